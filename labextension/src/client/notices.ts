/**
 * Calls about the messages that the user gets about jobs.
 */

import type { Connection } from '../request';
import { pathOf } from '../request';
import type { IPaiClient } from '../tokens';

/** The calls. */
export function notificationCalls(connection: Connection) {
  return {
    notifications: () => connection.rows('notifications'),
    addNotification: data =>
      connection.json('POST', 'notifications', JSON.stringify(data)),
    testNotification: async id => {
      await connection.api('POST', pathOf('notifications', id, 'test'));
    },
    removeNotification: async id => {
      await connection.api('DELETE', pathOf('notifications', id));
    }
  } satisfies Partial<IPaiClient>;
}
