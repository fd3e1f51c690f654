/**
 * What is known of a job, and what of it is looked at.
 */

import type { LogModel } from '../log/model';
import type { PaiError } from '../problem';
import type { IDocumentText, ILogTarget } from '../tokens';
import type {
  IAttempt,
  IJobDetail,
  IJobEvent,
  IJobMetrics,
  INotebookRun,
  ITask,
  IWhy
} from '../types';

/** Spans of time that metrics are shown of, in seconds. */
export const HOUR = 3600;
export const DAY = 24 * HOUR;
export const WEEK = 7 * DAY;

/** The parts of a job's page. */
export type DetailTab =
  'overview' | 'notebook' | 'metrics' | 'history' | 'logs' | 'document' | 'why';

/** A document as it was submitted, and as the backend understands it. */
export interface IDocuments {
  readonly submitted: IDocumentText;
  /** JSON; empty for a document that is no longer valid here. */
  readonly resolved: string;
}

/** Another job's document, to compare with. */
export interface IOtherDocument {
  readonly name: string;
  readonly text: string;
}

/** What is known of a job, and what of it is looked at. */
export interface IDetailState {
  /** The job; null until the first answer. */
  readonly job: IJobDetail | null;
  /** Why it waits, in full; null while it does not, or that is not known. */
  readonly why: IWhy | null;
  /** Whether changes are pushed at this moment. */
  readonly live: boolean;
  /** Why the picture may be out of date. */
  readonly problem: PaiError | null;
  /** Which part of the page is shown. */
  readonly tab: DetailTab;
  /** How far the job is with its notebook; null until that was looked at. */
  readonly notebook: INotebookRun | null;
  /** The attempts, the latest first; null until the history was looked at. */
  readonly attempts: readonly IAttempt[] | null;
  /** Events of the job as a whole, oldest first. */
  readonly timeline: readonly IJobEvent[];
  /** What its tasks used; null until that was looked at. */
  readonly metrics: IJobMetrics | null;
  /** For the last so many seconds. */
  readonly span: number;
  /** Its document; null until that was looked at. */
  readonly documents: IDocuments | null;
  /** The document that it is compared with. */
  readonly other: IOtherDocument | null;
  /** Whose output is shown; null until the job is known. */
  readonly target: ILogTarget | null;
  /** That output; null while the task has not started. */
  readonly log: LogModel | null;
}

/** Of a page that was just opened. */
export const EMPTY: IDetailState = {
  job: null,
  why: null,
  live: false,
  problem: null,
  tab: 'overview',
  notebook: null,
  attempts: null,
  timeline: [],
  metrics: null,
  span: HOUR,
  documents: null,
  other: null,
  target: null,
  log: null
};

/** All tasks of a job, in the order of the document. */
export function tasksOf(job: IJobDetail): readonly ITask[] {
  return job.taskRoles.flatMap(role => role.taskStatuses);
}

/** Whether a run of a task has written, or can have written, output. */
export function hasLog(task: ITask, attempt: number): boolean {
  return task.startedTime !== null || attempt < task.attempt;
}

/** The uid of a run of the task: that of its latest one with another number at its end. */
export function uidOfRun(task: ITask, attempt: number): string {
  return task.uid.replace(/\d+$/, String(attempt));
}
