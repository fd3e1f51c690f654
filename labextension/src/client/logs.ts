/**
 * Calls about logs.
 */

import type { Connection } from '../request';
import { withQuery } from '../request';
import type { IPaiClient } from '../tokens';
import { jobPath } from './jobs';

/** The calls. */
export function logCalls(connection: Connection) {
  return {
    log: async (job, target, offset, limit) => {
      const query = { ...target, offset, limit };
      const path = withQuery(jobPath(job, 'logs'), query);
      const answer = await connection.api('GET', path);
      const bytes = await answer.arrayBuffer();
      const first = Number(answer.headers.get('X-Pai-Offset') ?? 0);
      const next = answer.headers.get('X-Pai-Next');
      return {
        bytes,
        offset: first,
        next: next === null ? first + bytes.byteLength : Number(next)
      };
    },
    searchLog: (job, target, pattern, ignoreCase, offset) => {
      const query = { ...target, pattern, ignoreCase, offset };
      const path = withQuery(jobPath(job, 'logs', 'search'), query);
      return connection.json('GET', path);
    },
    logFile: (job, target) =>
      connection.address(jobPath(job, 'logs'), { ...target, download: true }),
    logTimes: (job, target, offset, limit) => {
      const query = { ...target, offset, limit };
      return connection.json(
        'GET',
        withQuery(jobPath(job, 'logs', 'times'), query)
      );
    },
    followLog: (job, target, offset, timestamps) => {
      const query = { ...target, offset, timestamps: timestamps || undefined };
      return connection.stream(jobPath(job, 'logs', 'stream'), query);
    }
  } satisfies Partial<IPaiClient>;
}
