/**
 * The form of a new kernel: what its job asks for.
 */

import type { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IJobNeeds } from '../dialog_form';
import { NeedsForm } from '../dialog_form';
import type { IClusterUse } from '../types';

/** What a job for a kernel asks for. */
export interface IKernelJob extends IJobNeeds {
  /** A time with its unit, after which the job is stopped when nothing has used it; empty: none. */
  readonly idleTimeout: string;
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
    taskRoles: [role],
    ...(job.idleTimeout && { extras: { idleTimeout: job.idleTimeout } })
  });
}

/** The body of the dialog. */
export class KernelForm
  extends NeedsForm
  implements Dialog.IBodyWidget<IKernelJob>
{
  constructor(use: IClusterUse, trans: TranslationBundle) {
    super(use, trans, trans.__('Image (with ipykernel)'), '1');
    this._idle = this.addText(trans.__('Stop when unused for (e.g. 8h)'));
  }

  getValue(): IKernelJob {
    return { ...this.needs(), idleTimeout: this._idle.value.trim() };
  }

  private readonly _idle: HTMLInputElement;
}
