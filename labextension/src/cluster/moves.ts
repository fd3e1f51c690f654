/**
 * Where a waiting job can go: which of the jobs around it in the list it may change places with.
 */

import type { QueuePlace } from '../tokens';
import type { IWaitingJob } from '../types';

/** The three ways to go. */
export type MoveKind = 'first' | 'up' | 'down';

/** All of them, as they are shown. */
export const MOVES: readonly MoveKind[] = ['first', 'up', 'down'];

/**
 * Where each way leads a job; null where it leads nowhere.
 *
 * `rows` are the jobs that the user may see, as they are served: for users their own, for administrators
 * all. Those of the same queue are just those that the job may change places with.
 */
export function movesOf(
  rows: readonly IWaitingJob[],
  job: IWaitingJob
): Readonly<Record<MoveKind, QueuePlace | null>> {
  const line = rows.filter(row => row.queue === job.queue);
  const here = line.findIndex(row => row.uid === job.uid);
  const before = line[here - 1];
  const after = line[here + 1];
  return {
    first: before ? { to: 'first' } : null,
    up: before ? { before: before.id } : null,
    down: after ? { after: after.id } : null
  };
}
