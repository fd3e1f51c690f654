/**
 * Commands that bring a document in: a file of this computer or of the Jupyter server, or that of another job.
 */

import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { copyIcon, fileUploadIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { reportProblem } from '../feedback';
import { paiIcon } from '../icons';
import { JOB_ARGS, jobOf } from '../jobs/commands';
import { CommandIDs } from '../tokens';
import type { DocumentModel } from './model';

import type { ISubmitCommandOptions } from './commands';

const NO_ARGS = { type: 'object', properties: {} } as const;

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

/** Jobs among whose names that of a clone is not to be, at most. */
const NAMES = 1000;

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

/** Add the commands. */
export function addImportCommands(
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
}
