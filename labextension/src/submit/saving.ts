/**
 * Commands that keep the document in front: in a file, or as a template.
 */

import {
  Dialog,
  InputDialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { reportProblem } from '../feedback';
import { CommandIDs } from '../tokens';
import type { DocumentModel } from './model';

import type { ISubmitCommandOptions } from './commands';

const NO_ARGS = { type: 'object', properties: {} } as const;

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

/** Add the commands. */
export function addSaveCommands(
  commands: CommandRegistry,
  options: ISubmitCommandOptions
): void {
  const { trans } = options;
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
}
