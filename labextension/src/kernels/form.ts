/**
 * The form of a new kernel: what its job asks for.
 */

import type { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { IClusterUse } from '../types';

/** What a job for a kernel asks for. */
export interface IKernelJob {
  readonly image: string;
  /** Empty: any. */
  readonly gpuType: string;
  readonly gpus: number;
  /** Empty: the default one. */
  readonly virtualCluster: string;
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

/** The document of such a job. It does nothing by itself. */
export function documentOf(job: IKernelJob, name: string): string {
  const role = {
    name: 'main',
    taskNumber: 1,
    cpuNumber: 4,
    memoryMB: 16384,
    gpuNumber: job.gpus,
    command: 'exec sleep infinity'
  };
  return JSON.stringify({
    jobName: name,
    image: job.image,
    ...(job.gpuType && { gpuType: job.gpuType }),
    ...(job.virtualCluster && { virtualCluster: job.virtualCluster }),
    taskRoles: [role]
  });
}

/** The body of the dialog. */
export class KernelForm
  extends Widget
  implements Dialog.IBodyWidget<IKernelJob>
{
  constructor(use: IClusterUse, trans: TranslationBundle) {
    super();
    this.addClass('jp-pai-KernelForm');
    const { virtualClusters, gpuTypes } = choices(use);
    this._image = document.createElement('input');
    this._gpus = document.createElement('input');
    this._gpus.type = 'number';
    this._gpus.min = '0';
    this._gpus.value = '1';
    this._type = KernelForm._select(['', ...gpuTypes], trans.__('any'));
    this._cluster = KernelForm._select(virtualClusters, '');
    this._add(trans.__('Image (with ipykernel)'), this._image);
    this._add(trans.__('GPUs'), this._gpus);
    this._add(trans.__('GPU type'), this._type);
    this._add(trans.__('Virtual cluster'), this._cluster);
  }

  getValue(): IKernelJob {
    return {
      image: this._image.value.trim(),
      gpus: Math.max(0, Math.floor(Number(this._gpus.value) || 0)),
      gpuType: this._type.value,
      virtualCluster: this._cluster.value
    };
  }

  private static _select(
    names: readonly string[],
    empty: string
  ): HTMLSelectElement {
    const select = document.createElement('select');
    for (const name of names) {
      select.add(new Option(name || empty, name));
    }
    return select;
  }

  private _add(label: string, control: HTMLElement): void {
    const line = document.createElement('label');
    line.textContent = label;
    line.append(control);
    this.node.append(line);
  }

  private readonly _image: HTMLInputElement;
  private readonly _gpus: HTMLInputElement;
  private readonly _type: HTMLSelectElement;
  private readonly _cluster: HTMLSelectElement;
}
