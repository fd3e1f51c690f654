/**
 * What is asked before a program runs as a job.
 */

import type { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IJobNeeds } from '../dialog_form';
import { NeedsForm } from '../dialog_form';
import type { IClusterUse } from '../types';

/** A program of the Jupyter server, and what its job gets. */
export interface IProgramRequest extends IJobNeeds {
  readonly path: string;
  /** What follows its name on the command line, as it is typed. */
  readonly arguments: string;
  /** Whether the files beside the program go along. */
  readonly withFolder: boolean;
}

/** The body of the dialog. */
export class ProgramForm
  extends NeedsForm
  implements Dialog.IBodyWidget<IProgramRequest>
{
  constructor(
    private readonly _path: string,
    use: IClusterUse,
    trans: TranslationBundle
  ) {
    super(use, trans, trans.__('Image'), '0');
    this._arguments = this.addText(trans.__('Arguments'));
    this._folder = this.add(
      trans.__('Send the files beside the program'),
      document.createElement('input')
    );
    this._folder.type = 'checkbox';
    this._folder.checked = _path.includes('/');
  }

  getValue(): IProgramRequest {
    return {
      ...this.needs(),
      path: this._path,
      arguments: this._arguments.value,
      withFolder: this._folder.checked
    };
  }

  private readonly _arguments: HTMLInputElement;
  private readonly _folder: HTMLInputElement;
}
