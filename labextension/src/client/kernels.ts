/**
 * Calls about kernels of the Jupyter server in jobs.
 */

import type { Connection } from '../request';
import type { IJobKernel, IPaiClient } from '../tokens';

/** Marks a job that was made for a kernel and ends with it. The server extension knows it. */
export const KERNEL_TAG = 'made-for-kernel';

/** The calls. */
export function kernelCalls(connection: Connection) {
  return {
    kernels: async () => {
      type Found = { readonly kernels: readonly IJobKernel[] };
      return (await connection.server<Found>('GET', 'kernels')).kernels;
    }
  } satisfies Partial<IPaiClient>;
}
