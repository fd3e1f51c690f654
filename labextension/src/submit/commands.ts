/**
 * Commands that bring a document in and submit it.
 */

import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { addIcon, fileUploadIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { reportProblem } from '../feedback';
import { paiIcon } from '../icons';
import type { IJobListModel } from '../tokens';
import { CommandIDs } from '../tokens';
import type { DocumentModel, Outcome } from './model';

/** A document that was chosen. */
export interface IChosenFile {
  readonly name: string;
  readonly text: string;
}

/** What the commands act on. */
export interface ISubmitCommandOptions {
  readonly model: IJobListModel;
  readonly trans: TranslationBundle;
  /** The document in front; null when no submission page is. */
  readonly current: () => DocumentModel | null;
  /** Open a submission page and give its document. */
  readonly open: () => Promise<DocumentModel>;
  /** Let the user choose a file of this computer; null when cancelled. */
  readonly chooseFile: () => Promise<IChosenFile | null>;
  /** Path selected in the Jupyter file browser; null when there is none. */
  readonly selectedPath: () => string | null;
  /** Text of a file of the Jupyter server. */
  readonly readFile: (path: string) => Promise<string>;
}

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
  return typeof args.path === 'string' ? args.path : options.selectedPath();
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
          (await emptyDocument(options)).load(file.text, file.name);
        }
      } catch (reason) {
        reportProblem(trans, reason);
      }
    }
  });
  commands.addCommand(CommandIDs.importDocument, {
    label: trans.__('Submit as PAI Job…'),
    icon: paiIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: {
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
        const text = await options.readFile(path);
        (await options.open()).load(text, PathExt.basename(path));
      } catch (reason) {
        reportProblem(trans, reason);
      }
    }
  });
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

/** Submit the document in front; on success the job is shown. */
async function submit(
  commands: CommandRegistry,
  options: ISubmitCommandOptions
): Promise<Outcome | null> {
  const document = options.current();
  if (!document) {
    return null;
  }
  let outcome = await document.submit();
  const question = inTheWay(options.trans, outcome);
  if (question && (await mayReplace(options.trans, question))) {
    outcome = await document.submit(true);
  }
  if (outcome.kind === 'submitted') {
    const { id, uid, name } = outcome.job;
    Notification.success(options.trans.__('Submitted: %1', name), {
      autoClose: 3000
    });
    await options.model.refresh();
    options.model.select(uid);
    await commands.execute(CommandIDs.openJob, { job: id });
  }
  return outcome;
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
          ? trans.__('New Job')
          : trans.__('New PAI Job'),
    caption: trans.__('Type or paste a job document'),
    icon: args =>
      args.toolbar ? addIcon : args.launcher ? paiIcon : undefined,
    describedBy: { args: NO_ARGS },
    execute: async () => {
      await options.open();
    }
  });
  addImportCommands(commands, options);
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
