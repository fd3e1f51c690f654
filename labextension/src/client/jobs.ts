/**
 * Calls about jobs: lists, details, what has happened to them, and what is done to them.
 */

import type { Connection } from '../request';
import { pathOf, withQuery } from '../request';
import type { IPaiClient } from '../tokens';
import { KERNEL_TAG } from './kernels';

/** The path of a job. */
export function jobPath(job: string, ...parts: string[]): string {
  return pathOf('jobs', job, ...parts);
}

/** The calls. */
export function jobCalls(connection: Connection) {
  const change = async (job: string, what: string, value: string) => {
    const body = JSON.stringify({ value });
    await connection.api('PUT', jobPath(job, what), { body });
  };
  return {
    jobs: ({ states, tag, since, order, ...query }) =>
      connection.json(
        'GET',
        withQuery('jobs', {
          ...query,
          state: states?.join(','),
          tagsContain: tag,
          submittedSince: since,
          order: order ?? 'submissionTime,DESC',
          withTotalCount: true
        })
      ),
    job: job => connection.json('GET', jobPath(job)),
    why: job => connection.json('GET', jobPath(job, 'why')),
    metrics: (job, seconds) =>
      connection.json(
        'GET',
        withQuery(jobPath(job, 'metrics'), { seconds, points: 120 })
      ),
    attempts: job => connection.rows(jobPath(job, 'job-attempts')),
    events: (job, after) =>
      connection.rows(withQuery(jobPath(job, 'events'), { after })),
    stop: job => change(job, 'executionType', 'STOP'),
    start: job => change(job, 'executionType', 'START'),
    tag: (job, tag) => change(job, 'tag', tag),
    markForKernel: job => change(job, 'tag', KERNEL_TAG),
    delete: async job => {
      await connection.api('DELETE', jobPath(job));
    },
    release: (job, task) =>
      connection.json('POST', withQuery(jobPath(job, 'release'), { task })),
    move: (job, place) =>
      connection.json('POST', jobPath(job, 'move'), JSON.stringify(place)),
    output: job => connection.server('GET', pathOf('output', job)),
    allEvents: position =>
      connection.stream('events/stream', { position: position ?? undefined }),
    jobEvents: (job, after) =>
      connection.stream(jobPath(job, 'events', 'stream'), { after })
  } satisfies Partial<IPaiClient>;
}
