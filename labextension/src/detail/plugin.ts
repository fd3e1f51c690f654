/**
 * The plugin of job pages.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { showPage } from '../place';
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
    const tracker = new WidgetTracker<MainAreaWidget<JobPage>>({
      namespace: 'jupyter-pai-job'
    });
    addOpenJob(commands, {
      jobs,
      trans: language.load(DOMAIN),
      open: async job => {
        const shown = tracker.find(page => page.content.model.name === job);
        if (shown) {
          showPage(shell, labShell, shown);
          return;
        }
        const [{ JobPage }, { DetailModel }] = await Promise.all([
          import('./view'),
          import('./model')
        ]);
        const content = new JobPage({
          model: new DetailModel(client, job),
          commands,
          rendermime,
          translator: language
        });
        const page = new MainAreaWidget({ content });
        page.toolbar.hide();
        page.id = `jp-pai-job-page-${job}`;
        await tracker.add(page);
        showPage(shell, labShell, page);
      }
    });
    jobs.deleted.connect((_, uid) => {
      tracker
        .find(page => page.content.model.state.job?.uid === uid)
        ?.dispose();
    });
    jobs.restarted.connect((_, uid) => {
      tracker
        .find(page => page.content.model.state.job?.uid === uid)
        ?.content.model.start();
    });
    tracker.currentChanged.connect((_, page) => {
      jobs.select(page?.content.model.state.job?.uid ?? jobs.state.selected);
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openJob,
        args: page => ({ job: page.content.model.name }),
        name: page => page.content.model.name
      });
    }
  }
};
