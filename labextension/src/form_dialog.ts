/**
 * A dialog that stays open until what was typed into it has been accepted.
 */

import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { DialogForm } from './dialog_form';
import { reportProblem } from './feedback';
import { asPaiError } from './problem';
import { inWords } from './worded';
import { problemWords } from './words';

/** What can be filled in first. */
const FIRST = 'input, select, textarea';

/** A form whose values can be read. */
type Form<T> = DialogForm & { getValue(): T };

/** Asks by a form, and does what it asks for before it closes: a refusal costs nothing that was typed. */
export class FormDialog<T> extends Dialog<T> {
  constructor(options: FormDialog.IOptions<T>) {
    const { title, form, label } = options;
    const buttons = [Dialog.cancelButton(), Dialog.okButton({ label })];
    super({ title, body: form, buttons, focusNodeSelector: FIRST });
    this._choices = buttons;
    this._options = options;
  }

  /** Show it; resolves with whether the change was made. */
  static async ask<T>(options: FormDialog.IOptions<T>): Promise<boolean> {
    const dialog = new FormDialog(options);
    await dialog.launch();
    return dialog._isDone;
  }

  /** Called when a button or Enter is pressed. */
  resolve(index?: number): void {
    const { accept } = this._choices[index ?? this._choices.length - 1];
    if (!accept) {
      super.resolve(index);
    } else if (!this._isBusy && this._options.form.check()) {
      void this._change();
    }
  }

  private async _change(): Promise<void> {
    const { form, change, trans } = this._options;
    this._setBusy(true);
    try {
      await change(form.getValue());
    } catch (reason) {
      const problem = asPaiError(reason);
      if (this.isDisposed) {
        reportProblem(trans, problem);
      } else {
        this._setBusy(false);
        form.refuse(
          problemWords(trans, problem),
          problem.faults.map(fault => inWords(trans, fault))
        );
      }
      return;
    }
    this._isDone = true;
    // Not `resolve`, which does nothing where something invalid was typed meanwhile.
    this.reject();
  }

  /** Not disabled meanwhile: the button would lose the focus. */
  private _setBusy(isBusy: boolean): void {
    this._isBusy = isBusy;
    this.node.setAttribute('aria-busy', String(isBusy));
  }

  private readonly _choices: readonly Dialog.IButton[];
  private readonly _options: FormDialog.IOptions<T>;
  private _isBusy = false;
  private _isDone = false;
}

/** Options of {@link FormDialog}. */
export namespace FormDialog {
  /** What is asked, and what is done with the answer. */
  export interface IOptions<T> {
    readonly trans: TranslationBundle;
    readonly title: string;
    readonly form: Form<T>;
    /** Of the button that accepts. */
    readonly label: string;
    /** Rejects when the backend refuses. */
    readonly change: (value: T) => Promise<unknown>;
  }
}
