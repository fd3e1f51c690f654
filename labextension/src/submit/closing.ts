/**
 * The page of a document in the main area, which asks before it closes.
 */

import { Dialog, MainAreaWidget, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import type { DocumentPage } from './view';

/** A page of the main area, which asks before it closes a document that is neither saved nor submitted. */
export class DocumentMain extends MainAreaWidget<DocumentPage> {
  constructor(
    content: DocumentPage,
    private readonly _trans: TranslationBundle,
    private readonly _save: () => Promise<boolean>
  ) {
    super({ content });
  }

  protected onCloseRequest(msg: Message): void {
    const { model } = this.content;
    if (!model.state.dirty) {
      super.onCloseRequest(msg);
      return;
    }
    if (!this._isAsking) {
      this._isAsking = true;
      void this._mayClose()
        .then(may => may && super.onCloseRequest(msg))
        .finally(() => (this._isAsking = false));
    }
  }

  /** What becomes of the document, as the user decides; false when the page stays. */
  private async _mayClose(): Promise<boolean> {
    const { _trans: trans } = this;
    const { model } = this.content;
    const { button } = await showDialog({
      title: trans.__('Close the job document?'),
      body: trans.__(
        'It is neither saved nor submitted. A draft is found below "New job"; the values of secrets are not kept in it.'
      ),
      buttons: [
        Dialog.cancelButton(),
        Dialog.warnButton({
          label: trans.__('Discard'),
          actions: ['discard']
        }),
        Dialog.createButton({
          label: trans.__('Save…'),
          actions: ['save']
        }),
        Dialog.okButton({ label: trans.__('Keep as draft') })
      ]
    });
    if (!button.accept) {
      return false;
    }
    if (button.actions.includes('save')) {
      return this._save();
    }
    if (button.actions.includes('discard')) {
      await model.settle();
      return true;
    }
    return model.keepDraft();
  }

  private _isAsking = false;
}
