/**
 * Calls about what was used, and budgets.
 */

import type { Connection } from '../request';
import { withQuery } from '../request';
import type { IPaiClient } from '../tokens';

/** The calls. */
export function usageCalls(connection: Connection) {
  return {
    usage: (by, bounds) =>
      connection.json(
        'GET',
        // By day, each row is a day itself.
        withQuery('usage', { by, ...bounds, daily: by !== 'day' })
      ),
    budgets: () => connection.rows('budgets')
  } satisfies Partial<IPaiClient>;
}
