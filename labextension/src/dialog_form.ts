/**
 * Bodies of dialogs that ask for a few values.
 */

import { Widget } from '@lumino/widgets';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IClusterUse } from './types';

/** Controls below each other, each with its label. */
export class DialogForm extends Widget {
  constructor() {
    super();
    this.addClass('jp-pai-DialogForm');
  }

  /** A control with its label. */
  protected add<T extends HTMLElement>(label: string, control: T): T {
    const line = document.createElement('label');
    line.textContent = label;
    line.append(control);
    this.node.append(line);
    return control;
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
