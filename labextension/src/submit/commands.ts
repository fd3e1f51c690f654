/**
 * Commands on the document of a job: begin one, and submit it.
 */

import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { addIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { reportProblem } from '../feedback';
import { asPaiError } from '../problem';
import { paiIcon } from '../icons';
import type { IJobListModel, IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import { addBoard } from './board';
import type { IFileText } from './encoding';
import { addImportCommands } from './importing';
import type {
  DocumentModel,
  IDocumentFile,
  ISentFolder,
  Outcome
} from './model';
import { addSaveCommands } from './saving';

const NO_ARGS = { type: 'object', properties: {} } as const;

/** A file of the Jupyter server as it was read or written. */
export interface IServerFile {
  readonly bytes: Uint8Array;
  /** When it was changed. */
  readonly changed: string;
}

/** What the commands act on. */
export interface ISubmitCommandOptions {
  readonly client: IPaiClient;
  readonly model: IJobListModel;
  readonly trans: TranslationBundle;
  /** The document in front; null when no submission page is. */
  readonly current: () => DocumentModel | null;
  /** Open a submission page and give its document. */
  readonly open: () => Promise<DocumentModel>;
  /** Let the user choose a file of this computer; null when cancelled. */
  readonly chooseFile: () => Promise<File | null>;
  /** The text of a file; null when the user does not want it converted. */
  readonly textOf: (
    file: File | Uint8Array,
    name: string
  ) => Promise<IFileText | null>;
  /** Path selected in the Jupyter file browser; null when there is none. */
  readonly selectedPath: () => string | null;
  /** Path of the file in the editor in front; null when none is. */
  readonly openedPath: () => string | null;
  /** Read a file of the Jupyter server. */
  readonly readFile: (path: string) => Promise<IServerFile>;
  /** Write a file of the Jupyter server; when it was changed then. */
  readonly writeFile: (path: string, bytes: Uint8Array) => Promise<string>;
}

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** What is in the way of a submission that may replace it; empty when nothing is. */
function inTheWay(trans: TranslationBundle, outcome: Outcome): string {
  if (outcome.kind !== 'failed') {
    return '';
  }
  switch (outcome.problem.code) {
    case 'ConflictJobError':
      return trans.__(
        'You have a job of this name. It will be stopped and renamed; the new job takes its name and addresses, and starts when it has ended.'
      );
    case 'ConflictAddressError':
      return trans.__(
        '%1 It will be stopped; the new job takes the workspace name over, and starts when it has ended.',
        outcome.problem.message
      );
    default:
      return '';
  }
}

/** Ask whether the job that is in the way is to be stopped for the new one. */
async function mayReplace(
  trans: TranslationBundle,
  body: string
): Promise<boolean> {
  const { button } = await showDialog({
    title: trans.__('Replace the job?'),
    body,
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({ label: trans.__('Replace') })
    ]
  });
  return button.accept;
}

/** Submit a document, and ask when a job is in its way. */
export async function submitDocument(
  options: Pick<ISubmitCommandOptions, 'model' | 'trans'>,
  document: DocumentModel
): Promise<Outcome> {
  let outcome = await document.submit();
  const question = inTheWay(options.trans, outcome);
  if (question && (await mayReplace(options.trans, question))) {
    outcome = await document.submit(true);
  }
  if (outcome.kind === 'submitted') {
    const { uid, name } = outcome.job;
    Notification.success(options.trans.__('Submitted: %1', name), {
      autoClose: 3000
    });
    await options.model.refresh();
    options.model.select(uid);
  }
  return outcome;
}

/** Submit the document in front; on success the job is shown. */
async function submit(
  commands: CommandRegistry,
  options: ISubmitCommandOptions
): Promise<Outcome | null> {
  const document = options.current();
  const outcome = document && (await submitDocument(options, document));
  if (outcome?.kind === 'submitted') {
    await commands.execute(CommandIDs.openJob, { job: outcome.job.id });
  }
  return outcome;
}

/** Begin with a template. */
async function begin(
  { client, trans }: ISubmitCommandOptions,
  document: DocumentModel,
  template: string,
  filename: string
): Promise<void> {
  try {
    document.load(await client.kept('templates', template), filename);
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

/** Go on where a page was left: with its draft, or with its file when nothing was changed. */
async function resume(
  options: ISubmitCommandOptions,
  document: DocumentModel,
  draft: string,
  filename: string,
  file: IDocumentFile | null,
  folder: ISentFolder | null
): Promise<void> {
  try {
    await document.resume(draft, filename, file, folder);
  } catch (reason) {
    if (asPaiError(reason).code !== 'NoFileError') {
      reportProblem(options.trans, reason);
    } else if (file) {
      const { bytes, changed } = await options.readFile(file.path);
      const text = await options.textOf(bytes, filename);
      if (text) {
        document.load(text, filename, { path: file.path, changed });
      }
    }
  }
}

/** Add all commands on documents. */
export function addSubmitCommands(
  commands: CommandRegistry,
  options: ISubmitCommandOptions
): void {
  const { trans } = options;
  commands.addCommand(CommandIDs.newJob, {
    label: args =>
      args.toolbar
        ? ''
        : args.launcher
          ? wordOf(args.title) || trans.__('New Job')
          : trans.__('New PAI Job'),
    caption: args =>
      wordOf(args.about) || trans.__('Type or paste a job document'),
    icon: args =>
      args.toolbar ? addIcon : args.launcher ? paiIcon : undefined,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          template: { type: 'string', description: 'What to begin with.' },
          draft: { type: 'string', description: 'The draft to go on with.' },
          filename: { type: 'string', description: 'What it is called.' },
          path: { type: 'string', description: 'The file that it is.' },
          changed: { type: 'string', description: 'When that was changed.' },
          folder: { type: 'string', description: 'The folder sent with it.' },
          codeDir: { type: 'string', description: 'What it calls that.' }
        }
      }
    },
    execute: async args => {
      const document = await options.open();
      const { draft, filename, path, changed, template } = args;
      const codeDir = wordOf(args.codeDir);
      if (typeof template === 'string') {
        await begin(options, document, template, wordOf(filename));
      }
      if (typeof draft === 'string') {
        const at = wordOf(path);
        const file = at ? { path: at, changed: wordOf(changed) } : null;
        const folder = codeDir ? { path: wordOf(args.folder), codeDir } : null;
        await resume(options, document, draft, wordOf(filename), file, folder);
      }
    }
  });
  addImportCommands(commands, options);
  addSaveCommands(commands, options);
  addBoard(commands, options);
  commands.addCommand(CommandIDs.submit, {
    label: trans.__('Submit the PAI Job'),
    describedBy: { args: NO_ARGS },
    isEnabled: () => {
      const state = options.current()?.state;
      return (
        state !== undefined &&
        !state.submitting &&
        state.check !== 'empty' &&
        state.check !== 'invalid'
      );
    },
    execute: () => submit(commands, options)
  });
}
