/**
 * What is asked before a notebook runs as a job.
 */

import type { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IJobNeeds } from '../dialog_form';
import { NeedsForm } from '../dialog_form';
import type { IClusterUse } from '../types';

/** A notebook of the Jupyter server, and what its job gets. */
export interface INotebookRequest extends IJobNeeds {
  readonly path: string;
  /** Values of variables by name, as JSON or as a text. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Whether the files beside the notebook go along. */
  readonly withFolder: boolean;
}

/** A cell of a notebook as its file has it. */
export interface INotebookCell {
  readonly source: string | readonly string[];
  readonly metadata?: { readonly tags?: unknown };
}

/** The tag of the cell whose variables are parameters. Source: papermill. */
const TAG = 'parameters';

/** `name = value`, with an annotation and a comment perhaps; not `name == value`. */
const ASSIGNMENT =
  /^([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^#]*?)\s*(?:#.*)?$/;

/** The variables that the parameters cell sets, with their values as they would be typed. */
export function parametersOf(
  cells: readonly INotebookCell[]
): ReadonlyMap<string, string> {
  const cell = cells.find(({ metadata }) => {
    const tags = metadata?.tags;
    return Array.isArray(tags) && tags.includes(TAG);
  });
  const source = cell?.source ?? '';
  const text = typeof source === 'string' ? source : source.join('');
  const found = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, name, value] = ASSIGNMENT.exec(line) ?? [];
    if (name && value) {
      const quoted = /^(["'])([^\\]*)\1$/.exec(value);
      found.set(name, quoted ? quoted[2] : value);
    }
  }
  return found;
}

/** The body of the dialog. */
export class NotebookForm
  extends NeedsForm
  implements Dialog.IBodyWidget<INotebookRequest>
{
  constructor(
    private readonly _path: string,
    parameters: ReadonlyMap<string, string>,
    use: IClusterUse,
    trans: TranslationBundle
  ) {
    super(use, trans, trans.__('Image (with Python)'), '0');
    for (const [name, value] of parameters) {
      const input = this.addText(trans.__('Parameter %1', name), value);
      this._parameters.set(name, [input, value]);
    }
    this._folder = this.add(
      trans.__('Send the files beside the notebook'),
      document.createElement('input')
    );
    this._folder.type = 'checkbox';
  }

  getValue(): INotebookRequest {
    const changed = [...this._parameters].filter(
      ([, [input, value]]) => input.value !== value
    );
    return {
      ...this.needs(),
      path: this._path,
      parameters: Object.fromEntries(
        changed.map(([name, [input]]) => [name, input.value])
      ),
      withFolder: this._folder.checked
    };
  }

  private readonly _folder: HTMLInputElement;
  private readonly _parameters = new Map<string, [HTMLInputElement, string]>();
}
