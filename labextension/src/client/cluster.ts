/**
 * Calls about the cluster as a whole.
 */

import type { Connection } from '../request';
import { pathOf } from '../request';
import type { IPaiClient } from '../tokens';
import type { IAnnounced } from '../types';

const rulesPath = (vc: string) => pathOf('virtual-clusters', vc, 'rules');

/** The calls. */
export function clusterCalls(connection: Connection) {
  return {
    announcement: async () => {
      const told = await connection.json<IAnnounced>('GET', 'announcement');
      return told.announcement;
    },
    vcRules: vc => connection.json('GET', rulesPath(vc)),
    changeVcRules: async (vc, change) => {
      const body = JSON.stringify(change);
      await connection.api('PUT', rulesPath(vc), { body });
    },
    reservations: () => connection.json('GET', 'reservations'),
    reserve: async made => {
      const body = JSON.stringify(made);
      await connection.api('POST', 'reservations', { body });
    },
    removeReservation: async id => {
      await connection.api('DELETE', pathOf('reservations', id));
    },
    use: () => connection.json('GET', 'cluster/use'),
    orphans: () => connection.rows('cluster/orphans'),
    endOrphan: async task => {
      await connection.api('DELETE', pathOf('cluster', 'orphans', task));
    }
  } satisfies Partial<IPaiClient>;
}
