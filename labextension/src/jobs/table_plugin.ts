/**
 * The plugin of the full-page table of jobs, and of their numbers in the status bar.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IStateDB } from '@jupyterlab/statedb';
import { IStatusBar } from '@jupyterlab/statusbar';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { tableRowsIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import { Pages } from '../place';
import { CommandIDs, DOMAIN, IJobListModel, IPaiClient } from '../tokens';
import { addChangeJobs } from './many';
import type { JobTablePage } from './table';

/** `2 running · 5 waiting`. */
export function numbersText(
  trans: TranslationBundle,
  running: number,
  waiting: number
): string {
  return trans.__('%1 running · %2 waiting', running, waiting);
}

/** A button in the status bar that shows the table. */
function numbers(
  jobs: IJobListModel,
  trans: TranslationBundle,
  open: () => void
): Widget {
  const node = document.createElement('button');
  const item = new Widget({ node });
  item.addClass('jp-pai-Numbers');
  node.title = trans.__('PAI jobs: show the table');
  node.onclick = open;
  const update = () => {
    const { running, waiting, loaded } = jobs.state;
    node.textContent = loaded ? numbersText(trans, running, waiting) : '';
  };
  jobs.changed.connect(update);
  item.disposed.connect(() => jobs.changed.disconnect(update));
  update();
  return item;
}

/** Shows all jobs in the main area. */
export const jobTablePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:job-table',
  description: 'Shows PAI jobs as a table, and their numbers.',
  autoStart: true,
  requires: [IPaiClient, IJobListModel],
  optional: [
    ILabShell,
    ITranslator,
    ICommandPalette,
    ILayoutRestorer,
    IStatusBar,
    IStateDB
  ],
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    jobs: IJobListModel,
    labShell: ILabShell | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    statusBar: IStatusBar | null,
    state: IStateDB | null
  ): void => {
    const language = translator ?? nullTranslator;
    const trans = language.load(DOMAIN);
    const { commands, shell } = app;
    const pages = new Pages<JobTablePage>(shell, labShell, 'jp-pai-job-table');
    addChangeJobs(commands, { client, model: jobs, trans });
    commands.addCommand(CommandIDs.showTable, {
      label: args => (args.toolbar ? '' : trans.__('Show All PAI Jobs')),
      caption: trans.__('Show all jobs as a table'),
      icon: args => (args.toolbar ? tableRowsIcon : undefined),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () =>
        pages.show('', async () => {
          const [{ JobTablePage }, { JobTableModel }, { SavedViews }] =
            await Promise.all([
              import('./table'),
              import('./table_model'),
              import('./views')
            ]);
          const views = new SavedViews(state);
          await views.load();
          return new JobTablePage({
            model: new JobTableModel(client),
            views,
            commands,
            translator: language
          });
        })
    });
    jobs.changed.connect(() => {
      pages.tracker.find(page => page.isVisible)?.content.model.refresh();
    });
    palette?.addItem({
      command: CommandIDs.showTable,
      category: trans.__('PAI')
    });
    statusBar?.registerStatusItem('jupyter-pai:numbers', {
      item: numbers(
        jobs,
        trans,
        () => void commands.execute(CommandIDs.showTable)
      ),
      align: 'left',
      rank: 50
    });
    pages.restore(restorer, CommandIDs.showTable);
  }
};
