/**
 * A dialog that chooses a file or folder of the backend's storage.
 */

import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IPaiClient } from '../tokens';
import { FilesModel } from './model';
import { folderOf, inDocuments, isOfStorage } from './paths';
import { FilesView } from './view';

/** The files, and the one that is chosen. */
class Chooser extends FilesView implements Dialog.IBodyWidget<string> {
  /** The chosen file, or the folder that is open, as documents write it. */
  getValue(): string {
    const { chosen, path } = this.model.state;
    return inDocuments(chosen || path || '/');
  }
}

/** A dialog whose body is used with the keyboard, too: Enter in it is the body's. */
class FilesDialog extends Dialog<string> {
  handleEvent(event: Event): void {
    const body = this.node.querySelector('.jp-pai-Files');
    const isOfBody = body?.contains(document.activeElement);
    const key = event instanceof KeyboardEvent ? event.key : '';
    const isTaken = ['Enter', 'ArrowLeft', 'ArrowRight'].includes(key);
    if (!(isOfBody && isTaken)) {
      super.handleEvent(event);
    }
  }
}

function dialogOf(model: FilesModel, trans: TranslationBundle): FilesDialog {
  const dialog = new FilesDialog({
    title: trans.__('Choose a file or folder of the storage'),
    body: new Chooser({ model, trans, actions: null }),
    buttons: [
      Dialog.cancelButton(),
      Dialog.okButton({ label: trans.__('Choose') })
    ]
  });
  dialog.addClass('jp-pai-FilesDialog');
  return dialog;
}

/**
 * Let the user choose a file or folder, beginning where a field of a document points; null when cancelled.
 *
 * The value is as documents write it.
 */
export async function choosePath(
  client: IPaiClient,
  trans: TranslationBundle,
  field: string
): Promise<string | null> {
  const model = new FilesModel(client);
  void (isOfStorage(field) ? model.open(folderOf(field)) : model.openHome());
  const dialog = dialogOf(model, trans);
  try {
    const { button, value } = await dialog.launch();
    return button.accept ? value : null;
  } finally {
    dialog.dispose();
    model.dispose();
  }
}
