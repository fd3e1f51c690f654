/**
 * The commands that run the notebook in front as a job, and open what has come of it.
 */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { JOB_ARGS } from '../jobs/commands';
import { reportProblem } from '../feedback';
import { paiIcon } from '../icons';
import type { IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import type { INotebookCell, INotebookRequest } from './form';
import { NotebookForm, parametersOf } from './form';

/** What is known of the notebook in front. */
export interface INotebookInFront {
  readonly path: string;
  readonly cells: () => readonly INotebookCell[];
  /** Write what was changed to its file. */
  readonly save: () => Promise<void>;
}

/** What the commands act on. */
export interface INotebookCommandOptions {
  readonly client: IPaiClient;
  readonly trans: TranslationBundle;
  /** The notebook in front; null when another page is. */
  readonly current: () => INotebookInFront | null;
  /** Open a notebook of the Jupyter server, at one of its cells where that is given. */
  readonly open: (path: string, cell: number | null) => Promise<void>;
}

async function asked(
  { client, trans }: INotebookCommandOptions,
  notebook: INotebookInFront
): Promise<INotebookRequest | null> {
  const parameters = parametersOf(notebook.cells());
  const use = await client.use();
  const answer = await showDialog({
    title: trans.__('Run this notebook as a job'),
    body: new NotebookForm(notebook.path, parameters, use, trans),
    buttons: [
      Dialog.cancelButton(),
      Dialog.okButton({ label: trans.__('Run') })
    ]
  });
  return answer.button.accept ? answer.value : null;
}

async function runNotebook(
  commands: CommandRegistry,
  options: INotebookCommandOptions
): Promise<void> {
  const notebook = options.current();
  if (!notebook) {
    return;
  }
  try {
    const run = await asked(options, notebook);
    if (run) {
      await notebook.save();
      const job = await options.client.runNotebook(run);
      await commands.execute(CommandIDs.openJob, {
        job: job.id,
        tab: 'notebook'
      });
    }
  } catch (reason) {
    reportProblem(options.trans, reason);
  }
}

/** Add the commands. */
export function addNotebookCommands(
  commands: CommandRegistry,
  options: INotebookCommandOptions
): void {
  const { client, trans } = options;
  commands.addCommand(CommandIDs.runNotebook, {
    label: args =>
      args.toolbar ? '' : trans.__('Run This Notebook as a Job…'),
    caption: trans.__('Run this notebook as a PAI job'),
    icon: paiIcon,
    describedBy: { args: { type: 'object', properties: {} } },
    isEnabled: () => options.current() !== null,
    execute: () => runNotebook(commands, options)
  });
  commands.addCommand(CommandIDs.openNotebook, {
    label: trans.__('Open Notebook with Outputs'),
    describedBy: { args: JOB_ARGS },
    execute: async ({ job }) => {
      if (typeof job !== 'string') {
        return;
      }
      try {
        const { path, failed } = await client.fetchNotebook(job);
        await options.open(path, failed);
      } catch (reason) {
        reportProblem(trans, reason);
      }
    }
  });
}
