/**
 * The commands that run a notebook or a program as a job, and open what has come of it.
 */

import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { JOB_ARGS } from '../jobs/commands';
import type { DialogForm } from '../dialog_form';
import { reportProblem } from '../feedback';
import { FormDialog } from '../form_dialog';
import { paiIcon } from '../icons';
import type { IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import type { IClusterUse, IJobDetail } from '../types';
import type { INotebookCell } from './form';
import { NotebookForm, parametersOf } from './form';
import { ProgramForm } from './program_form';

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
  /** The file of the editor in front, or the selection of the file browser; null when neither is a file. */
  readonly program: (isOpened: boolean) => string | null;
}

/** Whether a job can run the file of a path. */
function isProgram(path: string | null): path is string {
  return /\.(py|sh)$/.test(path ?? '');
}

/** Ask for what a job gets, submit it, and show it. */
async function runAsJob<T>(
  commands: CommandRegistry,
  { client, trans }: INotebookCommandOptions,
  title: string,
  formOf: (use: IClusterUse) => DialogForm & { getValue(): T },
  start: (asked: T) => Promise<IJobDetail>,
  tab: string
): Promise<void> {
  try {
    let job = '';
    const isStarted = await FormDialog.ask({
      trans,
      title,
      form: formOf(await client.use()),
      label: trans.__('Run'),
      change: async asked => {
        job = (await start(asked)).id;
      }
    });
    if (isStarted) {
      await commands.execute(CommandIDs.openJob, { job, tab });
    }
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

async function runNotebook(
  commands: CommandRegistry,
  options: INotebookCommandOptions
): Promise<void> {
  const { client, trans } = options;
  const notebook = options.current();
  if (!notebook) {
    return;
  }
  const { path } = notebook;
  await runAsJob(
    commands,
    options,
    trans.__('Run this notebook as a job'),
    use => new NotebookForm(path, parametersOf(notebook.cells()), use, trans),
    async asked => {
      await notebook.save();
      return client.runNotebook(asked);
    },
    'notebook'
  );
}

async function runProgram(
  commands: CommandRegistry,
  options: INotebookCommandOptions,
  isOpened: boolean
): Promise<void> {
  const { client, trans } = options;
  const path = options.program(isOpened);
  if (!isProgram(path)) {
    return;
  }
  await runAsJob(
    commands,
    options,
    trans.__('Run %1 as a job', PathExt.basename(path)),
    use => new ProgramForm(path, use, trans),
    async asked => {
      if (isOpened) {
        await commands.execute('docmanager:save');
      }
      return client.runProgram(asked);
    },
    'logs'
  );
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
  commands.addCommand(CommandIDs.runProgram, {
    label: trans.__('Run as PAI Job…'),
    caption: trans.__('Run this program as a PAI job'),
    icon: paiIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          edit: {
            type: 'boolean',
            description: 'The file of the editor in front; it is saved first.'
          }
        }
      }
    },
    isVisible: args => isProgram(options.program(args.edit === true)),
    execute: args => runProgram(commands, options, args.edit === true)
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
