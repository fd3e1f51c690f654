/**
 * Bodies of dialogs that ask for a few values.
 */

import { Widget } from '@lumino/widgets';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IProblemWords } from './error_words';
import type { IClusterUse, IFault } from './types';

/** What a form can be filled in with. */
type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** The class of what says why a control is refused. */
const REFUSAL = 'jp-pai-DialogForm-refusal';

/** Sentences that a screen reader reads out at once. */
function alertOf(sentences: readonly string[]): HTMLElement {
  const node = document.createElement('div');
  node.className = REFUSAL;
  node.setAttribute('role', 'alert');
  const said = sentences.filter(each => each !== '');
  node.textContent = said.join(' ');
  return node;
}

/** Controls below each other, each with its label. */
export class DialogForm extends Widget {
  constructor() {
    super();
    this.addClass('jp-pai-DialogForm');
  }

  /** Whether all is filled in as it must be; if not, the browser says what is wrong. */
  check(): boolean {
    const controls = this.node.querySelectorAll<Control>(':invalid');
    return [...controls].every(each => each.reportValidity());
  }

  /** Say what the backend refuses: below the control that it is about, else above all. */
  refuse(words: IProblemWords, faults: readonly IFault[] = []): void {
    this._forgetRefusals();
    const places = faults.map(each => this._named.get(each.path));
    const isPlaced = places.length > 0 && !places.includes(undefined);
    if (!isPlaced) {
      const note = alertOf([words.what, words.remedy]);
      note.classList.add('jp-pai-Note');
      note.dataset.kind = 'problem';
      this.node.prepend(note);
      note.scrollIntoView?.({ block: 'nearest' });
      return;
    }
    places.forEach((control, place) => {
      const { message, hint } = faults[place];
      const said = alertOf([message, hint]);
      said.id = `${REFUSAL}-${place}`;
      control!.setAttribute('aria-invalid', 'true');
      control!.setAttribute('aria-describedby', said.id);
      control!.closest('label')!.after(said);
    });
    places[0]!.focus();
  }

  /** What was typed is not kept in what may be left of the page. */
  dispose(): void {
    for (const input of this.node.querySelectorAll('input')) {
      input.value = '';
    }
    super.dispose();
  }

  /** Let refusals of this path of the request be shown at a control. */
  protected named<T extends Control>(path: string, control: T): T {
    this._named.set(path, control);
    return control;
  }

  /** A control with its label. */
  protected add<T extends HTMLElement>(label: string, control: T): T {
    const line = document.createElement('label');
    line.textContent = label;
    line.append(control);
    this.node.append(line);
    return control;
  }

  /** Give a control another label, and return that. */
  protected relabel(control: Control, label: string): HTMLLabelElement {
    const line = control.closest('label')!;
    line.replaceChildren(label, control);
    return line;
  }

  /** A line of text. */
  protected addText(label: string, value = ''): HTMLInputElement {
    const input = this.add(label, document.createElement('input'));
    input.value = value;
    return input;
  }

  /** A whole number of at least `least`. */
  protected addNumber(
    label: string,
    value: string,
    least: number
  ): HTMLInputElement {
    const input = this.addText(label, value);
    input.type = 'number';
    input.min = String(least);
    return input;
  }

  /** One of these names; an empty name is shown as `empty`. */
  protected addSelect(
    label: string,
    names: readonly string[],
    empty: string
  ): HTMLSelectElement {
    const select = document.createElement('select');
    for (const name of names) {
      select.add(new Option(name || empty, name));
    }
    return this.add(label, select);
  }

  private _forgetRefusals(): void {
    for (const said of this.node.querySelectorAll(`.${REFUSAL}`)) {
      said.remove();
    }
    for (const control of this._named.values()) {
      control.removeAttribute('aria-invalid');
      control.removeAttribute('aria-describedby');
    }
  }

  private readonly _named = new Map<string, Control>();
}

/** The names that a cluster offers to choose from. */
export function choices(use: IClusterUse): {
  readonly virtualClusters: readonly string[];
  readonly gpuTypes: readonly string[];
} {
  const granted = use.virtualClusters.filter(each => each.granted);
  const types = granted.flatMap(each =>
    each.cells.map(cells => cells.leafType)
  );
  return {
    virtualClusters: granted.map(each => each.name),
    gpuTypes: [...new Set(types)].filter(type => type !== '').sort()
  };
}

/** What a job gets that is made from a dialog. */
export interface IJobNeeds {
  readonly image: string;
  /** Empty: any. */
  readonly gpuType: string;
  readonly gpus: number;
  /** Empty: the default one. */
  readonly virtualCluster: string;
}

/** Asks for what a job gets. */
export class NeedsForm extends DialogForm {
  constructor(
    use: IClusterUse,
    trans: TranslationBundle,
    imageLabel: string,
    gpus: string
  ) {
    super();
    const { virtualClusters, gpuTypes } = choices(use);
    this._image = this.addText(imageLabel);
    this._gpus = this.addNumber(trans.__('GPUs'), gpus, 0);
    const types = ['', ...gpuTypes];
    this._type = this.addSelect(trans.__('GPU type'), types, trans.__('any'));
    this._cluster = this.addSelect(
      trans.__('Virtual cluster'),
      virtualClusters,
      ''
    );
  }

  /** What was chosen. */
  protected needs(): IJobNeeds {
    return {
      image: this._image.value.trim(),
      gpus: Math.max(0, Math.floor(Number(this._gpus.value) || 0)),
      gpuType: this._type.value,
      virtualCluster: this._cluster.value
    };
  }

  private readonly _image: HTMLInputElement;
  private readonly _gpus: HTMLInputElement;
  private readonly _type: HTMLSelectElement;
  private readonly _cluster: HTMLSelectElement;
}
