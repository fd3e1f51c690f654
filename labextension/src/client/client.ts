/**
 * The backend below the Jupyter server: the wire contract as calls, by subject.
 */

import type { ServerConnection } from '@jupyterlab/services';
import { Connection } from '../request';
import type { IPaiClient } from '../tokens';
import { accessCalls } from './access';
import { clusterCalls } from './cluster';
import { documentCalls } from './documents';
import { fileCalls } from './files';
import { jobCalls } from './jobs';
import { kernelCalls } from './kernels';
import { logCalls } from './logs';
import { notificationCalls } from './notices';
import { peopleCalls } from './people';
import { runCalls } from './runs';
import { usageCalls } from './usage';

/** {@link IPaiClient} over the Jupyter server's connection settings. */
export function clientOver(settings: ServerConnection.ISettings): IPaiClient {
  const connection = new Connection(settings);
  return {
    ...jobCalls(connection),
    ...documentCalls(connection),
    ...fileCalls(connection),
    ...logCalls(connection),
    ...accessCalls(connection),
    ...clusterCalls(connection),
    ...peopleCalls(connection),
    ...notificationCalls(connection),
    ...usageCalls(connection),
    ...kernelCalls(connection),
    ...runCalls(connection)
  };
}
