/**
 * The backend below the Jupyter server: the wire contract as calls, by subject.
 */

import type { ServerConnection } from '@jupyterlab/services';
import { Connection } from '../request';
import type { IPaiClient } from '../tokens';
import { accessCalls } from './access';
import { clusterCalls } from './cluster';
import { documentCalls } from './documents';
import { jobCalls } from './jobs';
import { kernelCalls } from './kernels';
import { logCalls } from './logs';
import { peopleCalls } from './people';
import { runCalls } from './runs';

/** {@link IPaiClient} over the Jupyter server's connection settings. */
export function clientOver(settings: ServerConnection.ISettings): IPaiClient {
  const connection = new Connection(settings);
  return {
    ...jobCalls(connection),
    ...documentCalls(connection),
    ...logCalls(connection),
    ...accessCalls(connection),
    ...clusterCalls(connection),
    ...peopleCalls(connection),
    ...kernelCalls(connection),
    ...runCalls(connection)
  };
}
