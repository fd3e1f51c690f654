/**
 * Commands that bring a document in and submit it.
 */

import {
  Dialog,
  InputDialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { addIcon, copyIcon, fileUploadIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { reportProblem } from '../feedback';
import { asPaiError } from '../problem';
import { paiIcon } from '../icons';
import { JOB_ARGS, jobOf } from '../jobs/commands';
import type { IJobListModel, IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import { addBoard } from './board';
import type { IFileText } from './encoding';
import type {
  DocumentModel,
  IDocumentFile,
  ISentFolder,
  Outcome
} from './model';

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

/** Jobs among whose names that of a clone is not to be, at most. */
const NAMES = 1000;

const NO_ARGS = { type: 'object', properties: {} } as const;

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Whether a path looks like a job document. */
export function isDocumentPath(path: string): boolean {
  return /\.(json|ya?ml)$/i.test(path);
}

/** The page in front when it is still empty, else a new one. */
async function emptyDocument(
  options: ISubmitCommandOptions
): Promise<DocumentModel> {
  const current = options.current();
  return current?.state.check === 'empty' ? current : options.open();
}

function pathOf(
  options: ISubmitCommandOptions,
  args: ReadonlyPartialJSONObject
): string | null {
  if (typeof args.path === 'string') {
    return args.path;
  }
  return args.edit ? options.openedPath() : options.selectedPath();
}

/** Open a file of this computer. */
export async function importFile(
  options: ISubmitCommandOptions,
  file: File
): Promise<void> {
  const text = await options.textOf(file, file.name);
  if (text) {
    (await emptyDocument(options)).load(text, file.name);
  }
}

/** Open a file of the Jupyter server in a page of its own. */
async function openFile(
  options: ISubmitCommandOptions,
  path: string
): Promise<void> {
  const name = PathExt.basename(path);
  const { bytes, changed } = await options.readFile(path);
  const text = await options.textOf(bytes, name);
  if (text) {
    (await options.open()).load(text, name, { path, changed });
  }
}

function addImportCommands(
  commands: CommandRegistry,
  options: ISubmitCommandOptions
): void {
  const { trans } = options;
  commands.addCommand(CommandIDs.importFile, {
    label: args => (args.toolbar ? '' : trans.__('Import PAI Job File…')),
    caption: trans.__('Import a job file (JSON or YAML)'),
    icon: args => (args.toolbar ? fileUploadIcon : undefined),
    describedBy: { args: NO_ARGS },
    execute: async () => {
      try {
        const file = await options.chooseFile();
        if (file) {
          await importFile(options, file);
        }
      } catch (reason) {
        reportProblem(trans, reason);
      }
    }
  });
  commands.addCommand(CommandIDs.importDocument, {
    label: args =>
      args.edit ? trans.__('Edit in PAI Form') : trans.__('Submit as PAI Job…'),
    icon: paiIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          edit: {
            type: 'boolean',
            description: 'The file of the editor in front; it is saved first.'
          },
          path: {
            type: 'string',
            description:
              'Path on the Jupyter server; the file browser’s selection when absent.'
          }
        }
      }
    },
    isVisible: args => isDocumentPath(pathOf(options, args) ?? ''),
    execute: async args => {
      const path = pathOf(options, args);
      if (path === null) {
        return;
      }
      try {
        if (args.edit) {
          await commands.execute('docmanager:save');
        }
        await openFile(options, path);
      } catch (reason) {
        reportProblem(trans, reason);
      }
    }
  });
}

/** A job's name with the next number behind it that no other has: `train_2`, then `train_3`. */
export function cloneName(name: string, taken: readonly string[]): string {
  const [, stem, number] = /^(.*?)(?:_([1-9]\d{0,2}))?$/s.exec(name) ?? [];
  for (let next = Number(number ?? 1) + 1; ; next++) {
    const wanted = `${stem}_${next}`;
    if (!taken.includes(wanted)) {
      return wanted;
    }
  }
}

/** Open the document of a job under a new name. */
async function cloneJob(
  options: ISubmitCommandOptions,
  job: string
): Promise<void> {
  const { client, trans } = options;
  try {
    const [{ name, username }, document] = await Promise.all([
      client.job(job),
      client.document(job, true)
    ]);
    const keyword = name.replace(/_\d{1,3}$/, '');
    const { data } = await client.jobs({ keyword, limit: NAMES });
    const taken = data
      .filter(other => other.username === username)
      .map(other => other.name);
    const opened = await options.open();
    opened.clone(document, document.isMasked ? '' : job);
    opened.rename(cloneName(name, taken));
    if (document.isMasked) {
      Notification.warning(
        trans.__('The secrets of this document are masked. Type them again.')
      );
    }
  } catch (reason) {
    reportProblem(trans, reason);
  }
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

/** Keep the document in front as a template under a name that is asked for. */
async function saveTemplate(options: ISubmitCommandOptions): Promise<void> {
  const { trans } = options;
  const document = options.current();
  if (!document) {
    return;
  }
  const { value: name } = await InputDialog.getText({
    title: trans.__('Save as template'),
    label: trans.__('Name: letters, digits, dots, dashes. Secrets are masked.'),
    pattern: '[A-Za-z0-9_\\-][A-Za-z0-9._\\-]{0,62}',
    required: true,
    text: document.state.documentName,
    okLabel: trans.__('Save')
  });
  if (!name) {
    return;
  }
  try {
    await document.saveTemplate(name);
    Notification.success(trans.__('Saved as template: %1', name), {
      autoClose: 3000
    });
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

/** Ask whether a file that another program has changed is to be overwritten. */
async function mayOverwrite(
  trans: TranslationBundle,
  path: string
): Promise<boolean> {
  const { button } = await showDialog({
    title: trans.__('Overwrite the file?'),
    body: trans.__('%1 has been changed since it was opened.', path),
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({ label: trans.__('Overwrite') })
    ]
  });
  return button.accept;
}

/** Write the document in front back to its file, or to one that is asked for. Whether it was written. */
export async function saveDocument(
  options: ISubmitCommandOptions,
  document: DocumentModel
): Promise<boolean> {
  const { trans } = options;
  const { file, filename } = document.state;
  try {
    if (file) {
      const { changed } = await options.readFile(file.path);
      if (changed !== file.changed && !(await mayOverwrite(trans, file.path))) {
        return false;
      }
    }
    let path = file?.path ?? '';
    if (!path) {
      const { value } = await InputDialog.getText({
        title: trans.__('Save the document'),
        label: trans.__('Path on the Jupyter server'),
        text: filename || 'job.json',
        required: true,
        okLabel: trans.__('Save')
      });
      if (!value) {
        return false;
      }
      path = value;
      const isTaken = await options.readFile(path).then(
        () => true,
        () => false
      );
      if (isTaken && !(await mayOverwrite(trans, path))) {
        return false;
      }
    }
    const changed = await options.writeFile(path, document.bytes());
    await document.saved({ path, changed }, PathExt.basename(path));
    return true;
  } catch (reason) {
    reportProblem(trans, reason);
    return false;
  }
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
  addBoard(commands, options);
  commands.addCommand(CommandIDs.cloneJob, {
    label: trans.__('Clone Job…'),
    caption: trans.__('Open the document of the job for another submission'),
    icon: copyIcon,
    describedBy: { args: JOB_ARGS },
    isEnabled: args => jobOf(options.model, args) !== null,
    execute: async args => {
      const job = jobOf(options.model, args);
      if (job !== null) {
        await cloneJob(options, job);
      }
    }
  });
  options.model.changed.connect(() =>
    commands.notifyCommandChanged(CommandIDs.cloneJob)
  );
  commands.addCommand(CommandIDs.saveDocument, {
    label: trans.__('Save the PAI Job Document'),
    describedBy: { args: NO_ARGS },
    isEnabled: () => (options.current()?.state.check ?? 'empty') !== 'empty',
    execute: async () => {
      const document = options.current();
      return document && saveDocument(options, document);
    }
  });
  commands.addCommand(CommandIDs.saveTemplate, {
    label: trans.__('Save the PAI Job as Template…'),
    describedBy: { args: NO_ARGS },
    isEnabled: () => (options.current()?.state.check ?? 'empty') !== 'empty',
    execute: () => saveTemplate(options)
  });
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
