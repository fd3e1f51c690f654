/**
 * What the plugins share: the names of commands and the services others may replace.
 */

import type { PartialJSONObject } from '@lumino/coreutils';
import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import type { Way } from './address';
import type { FormDialect, IFormSchema } from './form/schema';
import type { PaiError } from './request';
import type {
  IClusterUse,
  IDoctorReport,
  IGuide,
  IJobDetail,
  IJobPage,
  IJobSummary,
  IMoved,
  IOrphan,
  IReleased,
  IShare,
  ITicket,
  ITrial,
  IVerdict,
  IWhy,
  LogStream
} from './types';

/** The domain of the translation catalogue. */
export const DOMAIN = 'jupyter_pai';

/** What `%pai` puts into a notebook beside HTML and text. */
export const JOB_MIME = 'application/vnd.jupyter-pai.job+json';

/** Every command of the panel. */
export namespace CommandIDs {
  /** Show the list of jobs. */
  export const showJobs = 'pai:show-jobs';
  /** Read the list again. */
  export const refresh = 'pai:refresh';
  /** Open an empty document to type or paste a job into. */
  export const newJob = 'pai:new-job';
  /** Choose a document on this computer and open it for submission. */
  export const importFile = 'pai:import-file';
  /** Open a document of the Jupyter file browser for submission. */
  export const importDocument = 'pai:import-document';
  /** Submit the open document. */
  export const submit = 'pai:submit';
  /** Show everything about a job. */
  export const openJob = 'pai:open-job';
  /** Open a service of a job in a new browser tab. */
  export const openService = 'pai:open-service';
  /** Copy the SSH command of a job or task. */
  export const copySsh = 'pai:copy-ssh';
  /** Show how editors and other programs reach a job, and which will work. */
  export const connect = 'pai:connect';
  /** Open a terminal in a task. */
  export const openTerminal = 'pai:open-terminal';
  /** Stop a job, after asking. */
  export const stopJob = 'pai:stop-job';
  /** Run a job that has ended again. */
  export const restartJob = 'pai:restart-job';
  /** Delete a job that has ended, after asking. */
  export const deleteJob = 'pai:delete-job';
  /** Show who uses the cluster, and who waits. */
  export const showCluster = 'pai:show-cluster';
  /** Let a waiting job stand elsewhere in its queue. */
  export const moveJob = 'pai:move-job';
  /** End a task that the database does not know, after asking. */
  export const endOrphan = 'pai:end-orphan';
  /** Release tasks that are kept for debugging. */
  export const releaseJob = 'pai:release-job';
  /** Start a job and a notebook that computes in it. */
  export const newKernel = 'pai:new-kernel';
}

/** A kernel of the Jupyter server that runs in a job, or ran there. */
export interface IJobKernel {
  readonly id: string;
  readonly state: 'waiting' | 'connecting' | 'connected' | 'ended';
  /** What it waits for, or why it has ended. */
  readonly reason: string;
}

/** A terminal in a task. */
export interface ITerminalPlace {
  readonly job: string;
  readonly role: string;
  readonly index: number;
  readonly name: string;
}

/** What is known of one of the user's terminals in a task. */
export interface ITerminalSession {
  readonly name: string;
  /** How many windows show it. */
  readonly clients: number;
  /** How its shell ended; null while it runs. */
  readonly ended: object | null;
}

/** Which tasks' output is meant. */
export interface ILogTarget {
  readonly role: string;
  readonly index: number;
  readonly stream: LogStream;
}

/** A piece of a log. */
export interface ILogPage {
  readonly bytes: ArrayBuffer;
  /** Offset of the first byte; bytes count from the first ever written. */
  readonly offset: number;
  /** Offset behind the last byte. */
  readonly next: number;
}

/** What to list. */
export interface IJobQuery {
  readonly keyword?: string;
  /** All states when empty or absent. */
  readonly states?: readonly string[];
  readonly limit: number;
}

/** Where in its queue a job shall stand: beside another job, or first. */
export type QueuePlace =
  | { readonly before: string }
  | { readonly after: string }
  | { readonly to: 'first' };

/** Others' jobs that the user may enter, and the user's that others may. */
export interface IShares {
  readonly received: readonly IShare[];
  readonly given: readonly IShare[];
}

/** How a document is submitted. */
export interface ISubmissionTerms {
  /** The job's name instead of the document's. */
  readonly name?: string;
  /** Stop the job that has the name. */
  readonly replace?: boolean;
  /** The same submission again, with its key, makes no second job: its first answer may have been lost. */
  readonly key?: string;
}

/** A job in the forms that an output of a cell has: data by media type. */
export type IJobBundle = PartialJSONObject;

/** A document on its way to the backend. */
export interface IDocumentText {
  readonly text: string;
  /** Helps to tell JSON from YAML; empty when it never was a file. */
  readonly filename: string;
}

/**
 * The backend, below the Jupyter server.
 *
 * Every method rejects with {@link PaiError}. Sockets are returned unopened by the protocol:
 * their close event says how it went.
 */
export interface IPaiClient {
  /** One page of jobs, newest first. */
  jobs(query: IJobQuery): Promise<IJobPage>;
  /** Everything about a job. `job` is an id, alias or uid. */
  job(job: string): Promise<IJobDetail>;
  /** Why a job waits, and what would start it now. */
  why(job: string): Promise<IWhy>;
  /** Submit a document. */
  submit(
    document: IDocumentText,
    terms?: ISubmissionTerms
  ): Promise<IJobDetail>;
  /** Read a document and change nothing. */
  validate(document: IDocumentText): Promise<IVerdict>;
  /** Whether a document's job would start now; nothing is submitted. */
  trial(document: IDocumentText): Promise<ITrial>;
  /** The fields of a dialect's documents. */
  schema(dialect: FormDialect): Promise<IFormSchema>;
  /** Ask a job to stop. Stopping a stopped job is no error. */
  stop(job: string): Promise<void>;
  /** Run a job that has ended again. One that goes on is left alone. */
  start(job: string): Promise<void>;
  /** Delete a job that has ended, for good. */
  delete(job: string): Promise<void>;
  /** Release a kept task, given by its name, or of all that the job has. */
  release(job: string, task?: string): Promise<IReleased>;
  /** Let a waiting job stand elsewhere in its queue. Asking again is no error. */
  move(job: string, place: QueuePlace): Promise<IMoved>;
  /** Who uses the cluster, and who waits. */
  use(): Promise<IClusterUse>;
  /** Running tasks that the database does not know; for administrators. */
  orphans(): Promise<readonly IOrphan[]>;
  /** Have one of them end; for administrators. */
  endOrphan(task: string): Promise<void>;
  /** A one-time sign-in to a service. */
  ticket(
    job: string,
    label: string,
    role: string,
    index: number
  ): Promise<ITicket>;
  /** Who may enter whose jobs, as far as it concerns the user. */
  shares(): Promise<IShares>;
  /** How programs reach a running task; of the job's first one. */
  guide(job: string): Promise<IGuide>;
  /** Check which programs will work with it; takes seconds. */
  doctor(job: string): Promise<IDoctorReport>;
  /** The user's terminals in a task. */
  terminals(
    task: Omit<ITerminalPlace, 'name'>
  ): Promise<readonly ITerminalSession[]>;
  /** End a terminal and what runs in it. */
  endTerminal(place: ITerminalPlace): Promise<void>;
  /** The messages of a terminal, as Jupyter's own terminals have them. */
  terminalSocket(place: ITerminalPlace, start: boolean): WebSocket;
  /** Bytes of a log; a negative offset counts from the end. */
  log(
    job: string,
    target: ILogTarget,
    offset: number,
    limit: number
  ): Promise<ILogPage>;
  /** Kernels of the Jupyter server in jobs. Asking refreshes its list of kernel specs, too. */
  kernels(): Promise<readonly IJobKernel[]>;
  /** Mark a job as one that ends with its kernel. */
  markForKernel(job: string): Promise<void>;
  /** A job as a notebook holds it, form by form. */
  output(job: string): Promise<IJobBundle>;
  /** Events of all jobs, from `position` on or from now. */
  allEvents(position: number | string | null): WebSocket;
  /** Events of one job after number `after`. */
  jobEvents(job: string, after: number): WebSocket;
  /** A log followed from byte `offset`. */
  followLog(job: string, target: ILogTarget, offset: number): WebSocket;
  /** Where the browser reaches a service it has a ticket for, or what is missing. */
  wayTo(ticket: ITicket): Promise<Way>;
}

/** Talks to the backend. Replace it to show jobs of another source. */
export const IPaiClient = new Token<IPaiClient>(
  'jupyter-pai:IPaiClient',
  'The backend below the Jupyter server: jobs, documents, logs and sign-in to services.'
);

/** Which jobs are listed. */
export type JobScope = 'active' | 'all';

/** The job list as it is now. */
export interface IJobListState {
  readonly jobs: readonly IJobSummary[];
  /** How many jobs match, of which `jobs` are the newest. */
  readonly total: number;
  /** Who may enter what; empty until it is known. */
  readonly shares: IShares;
  readonly keyword: string;
  readonly scope: JobScope;
  /** Uid of the job that commands without arguments act on. */
  readonly selected: string | null;
  /** Whether a first answer has come. */
  readonly loaded: boolean;
  /** Whether changes are pushed at this moment. */
  readonly live: boolean;
  /** Why the list may be out of date. */
  readonly problem: PaiError | null;
}

/** The list of jobs, kept current while it is looked at. */
export interface IJobListModel extends IDisposable {
  readonly state: IJobListState;
  /** Emitted when {@link state} was replaced. */
  readonly changed: ISignal<IJobListModel, void>;
  /** Emitted with the uid of a job that is deleted, in the list or not. */
  readonly deleted: ISignal<IJobListModel, string>;
  /** Emitted with the uid of a job that had ended and runs again, in the list or not. */
  readonly restarted: ISignal<IJobListModel, string>;
  /** The selected job, if it is in the list. */
  readonly selectedJob: IJobSummary | null;
  /** Read the list again; resolves when it has been applied. */
  refresh(): Promise<void>;
  /** Make a job the one that commands act on. */
  select(uid: string | null): void;
  /** List only jobs whose name contains this. */
  setKeyword(keyword: string): void;
  /** List jobs that may still change, or all. */
  setScope(scope: JobScope): void;
  /** List more of the matching jobs. */
  showMore(): void;
}

/** The one list of jobs that the sidebar shows and the commands act on. */
export const IJobListModel = new Token<IJobListModel>(
  'jupyter-pai:IJobListModel',
  'The list of jobs and which of them is selected.'
);
