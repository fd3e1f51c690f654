/**
 * Calls about the cluster as a whole.
 */

import type { Connection } from '../request';
import { pathOf } from '../request';
import type { IPaiClient } from '../tokens';

/** The calls. */
export function clusterCalls(connection: Connection) {
  return {
    use: () => connection.json('GET', 'cluster/use'),
    orphans: () => connection.rows('cluster/orphans'),
    endOrphan: async task => {
      await connection.api('DELETE', pathOf('cluster', 'orphans', task));
    }
  } satisfies Partial<IPaiClient>;
}
