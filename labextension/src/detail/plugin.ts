/**
 * The plugin of job pages.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Pages } from '../place';
import { CommandIDs, DOMAIN, IJobListModel, IPaiClient } from '../tokens';
import { addOpenJob } from './commands';
import type { JobPage } from './view';

/** Opens a page for each job that is asked for. */
export const detailPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:detail',
  description: 'Shows a PAI job: its tasks, addresses and log.',
  autoStart: true,
  requires: [IPaiClient, IJobListModel, IRenderMimeRegistry],
  optional: [ILabShell, ITranslator, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    jobs: IJobListModel,
    rendermime: IRenderMimeRegistry,
    labShell: ILabShell | null,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null
  ): void => {
    const language = translator ?? nullTranslator;
    const { commands, shell } = app;
    const pages = new Pages<JobPage>(shell, labShell, 'jp-pai-job-page');
    const pageOf = (uid: string) =>
      pages.tracker.find(page => page.content.model.state.job?.uid === uid);
    addOpenJob(commands, {
      jobs,
      trans: language.load(DOMAIN),
      open: (job, tab) => {
        const make = async () => {
          const [{ JobPage }, { DetailModel }] = await Promise.all([
            import('./view'),
            import('./model')
          ]);
          const model = new DetailModel(client, job);
          return new JobPage({
            model,
            commands,
            rendermime,
            translator: language
          });
        };
        return pages.show(job, make, ({ model }, isNew) =>
          model.showTab(tab ?? (isNew ? 'overview' : model.state.tab))
        );
      }
    });
    jobs.deleted.connect((_, uid) => pageOf(uid)?.dispose());
    jobs.restarted.connect((_, uid) => pageOf(uid)?.content.model.start());
    pages.tracker.currentChanged.connect((_, page) => {
      jobs.select(page?.content.model.state.job?.uid ?? jobs.state.selected);
    });
    pages.restore(
      restorer,
      CommandIDs.openJob,
      page => page.model.name,
      page => ({ job: page.model.name })
    );
  }
};
