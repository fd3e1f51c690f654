/**
 * What is asked before a document is submitted as a sweep.
 */

import type { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { DialogForm } from '../dialog_form';

/** A document as many jobs, one for each combination of values. */
export interface ISweepRequest {
  readonly document: string;
  /** The job whose secrets masked values of the document are. */
  readonly secretsOf?: string;
  /** Such as `lr=0.1,0.01` and `seed=1..5`. */
  readonly axes: readonly string[];
  /** So many at once; no limit when absent. */
  readonly parallel?: number;
  /** Empty: after the document. */
  readonly name: string;
}

/** Lines as they may be typed; the same in every language. */
const EXAMPLE = 'lr=0.1,0.01\nseed=1..5';

/** What the dialog asks for. */
export type SweepTerms = Pick<ISweepRequest, 'axes' | 'parallel' | 'name'>;

/** The body of the dialog. */
export class SweepForm
  extends DialogForm
  implements Dialog.IBodyWidget<SweepTerms>
{
  constructor(trans: TranslationBundle) {
    super();
    this._axes = this.add(
      trans.__('Values, a line for each parameter'),
      document.createElement('textarea')
    );
    this._axes.rows = 4;
    this._axes.placeholder = EXAMPLE;
    this._parallel = this.addNumber(
      trans.__('Jobs at once (empty: no limit)'),
      '',
      1
    );
    this._name = this.addText(trans.__('Name (empty: after the document)'));
  }

  getValue(): SweepTerms {
    const parallel = Number(this._parallel.value);
    return {
      axes: this._axes.value
        .split('\n')
        .map(line => line.trim())
        .filter(line => line !== ''),
      ...(this._parallel.value && { parallel }),
      name: this._name.value.trim()
    };
  }

  private readonly _axes: HTMLTextAreaElement;
  private readonly _name: HTMLInputElement;
  private readonly _parallel: HTMLInputElement;
}
