/**
 * What the plugins share: the names of commands and the services others may replace.
 */

import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import type { Way } from './address';
import type { FormDialect, IFormSchema } from './form/schema';
import type { INotebookRequest } from './notebooks/form';
import type { IProgramRequest } from './notebooks/program_form';
import type { PaiError } from './problem';
import type { ISweepRequest } from './sweeps/form';
import type {
  IAnnouncement,
  IAttempt,
  IBudget,
  IClusterUse,
  ICodeServer,
  IContextList,
  IDoctorReport,
  IDraft,
  IFetchedNotebook,
  IFileEntry,
  IFileListing,
  IGuide,
  IHoldings,
  IJobDetail,
  IJobEvent,
  IJobMetrics,
  IJobPage,
  IJobSummary,
  ILogMatches,
  ILogTimes,
  IMoved,
  INotebookRun,
  INotification,
  IOrphan,
  IReleased,
  IShare,
  ISubmittedSweep,
  ISweepShown,
  ITemplate,
  ITicket,
  ITrial,
  IUploadState,
  IUser,
  IUserGroup,
  IUsage,
  INewReservation,
  IReservationList,
  IVcRules,
  IVerdict,
  IWhy
} from './types';
import type {
  IUserChange,
  INewUser,
  IGroupChange,
  INewNotification,
  IJobKernel,
  ITerminalPlace,
  ITerminalSession,
  ILogTarget,
  ILogPage,
  KeyFormat,
  IKeyFile,
  IJobQuery,
  QueuePlace,
  IShares,
  ISubmissionTerms,
  IJobBundle,
  IFileBytes,
  IFilePart,
  IDocumentText,
  Kept
} from './client/arguments';

export type * from './client/arguments';
export { CommandIDs } from './command_ids';

/** The domain of the translation catalogue. */
export const DOMAIN = 'jupyter_pai';

/** What `%pai` puts into a notebook beside HTML and text. */
export const JOB_MIME = 'application/vnd.jupyter-pai.job+json';

/** What `pai.form()` puts into a notebook beside HTML and text. */
export const FORM_MIME = 'application/vnd.jupyter-pai.form+json';

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
  /** What the tasks of a job used in the last so many seconds. */
  metrics(job: string, seconds: number): Promise<IJobMetrics>;
  /** The attempts of a job with all runs of its tasks, the latest first. */
  attempts(job: string): Promise<readonly IAttempt[]>;
  /** What has happened to a job after event number `after`. */
  events(job: string, after: number): Promise<readonly IJobEvent[]>;
  /** The document of a job as it was submitted; masked for all but its owner. */
  document(job: string, masked?: boolean): Promise<IDocumentText>;
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
  /** Documents to begin with. */
  templates(): Promise<readonly ITemplate[]>;
  /** Documents that the user has begun to write, the newest first. */
  drafts(): Promise<readonly IDraft[]>;
  /** The text of a template or draft. */
  kept(kind: Kept, name: string): Promise<string>;
  /** Keep a document as a template or draft of the user's; the backend masks its secrets. */
  keep(kind: Kept, name: string, document: IDocumentText): Promise<void>;
  /** What a folder of the backend's storage holds. */
  files(folder: string): Promise<readonly IFileEntry[]>;
  /** What a folder of the storage holds behind the name `after`, up to 10,000 names; null: the path is a file. */
  listing(path: string, after: string): Promise<IFileListing | null>;
  /** A file of the storage, up to `length` bytes of it. */
  readFile(path: string, length: number): Promise<IFileBytes>;
  /** The address of a file of the storage, to save it. */
  fileAddress(path: string): string;
  /** Upload a part of a file; the file gets its name with the last one. */
  sendPart(path: string, part: IFilePart): Promise<IUploadState>;
  /** Make a folder of the storage, with those above it. */
  makeFolder(path: string): Promise<void>;
  /** Delete a file of the storage, or a folder with all that is in it. */
  removeFile(path: string): Promise<void>;
  /** Delete a template or draft of the user's. */
  discard(kind: Kept, name: string): Promise<void>;
  /** Ask a job to stop. Stopping a stopped job is no error. */
  stop(job: string): Promise<void>;
  /** Run a job that has ended again. One that goes on is left alone. */
  start(job: string): Promise<void>;
  /** Give a job a tag. Giving it again is no error. */
  tag(job: string, tag: string): Promise<void>;
  /** Delete a job that has ended, for good. */
  delete(job: string): Promise<void>;
  /** Release a kept task, given by its name, or of all that the job has. */
  release(job: string, task?: string): Promise<IReleased>;
  /** Let a waiting job stand elsewhere in its queue. Asking again is no error. */
  move(job: string, place: QueuePlace): Promise<IMoved>;
  /** The caller as a user. */
  me(): Promise<IUser>;
  /** The users that the caller may see. */
  users(): Promise<readonly IUser[]>;
  /** What a user has; for administrators. */
  holdings(user: string): Promise<IHoldings>;
  /** Add a user; for administrators. */
  addUser(user: INewUser): Promise<void>;
  /** Change a user: what is given of it. */
  changeUser(user: string, data: IUserChange): Promise<void>;
  /** Refuse all requests and logins of a user, or end that; for administrators. */
  setDisabled(user: string, disabled: boolean): Promise<void>;
  /** Remove a user; an heir gets workspace names, templates and drafts, unless it is empty. For administrators. */
  removeUser(user: string, heir: string): Promise<void>;
  /** The groups of users that the caller may see, that of all users first. */
  groups(): Promise<readonly IUserGroup[]>;
  /** Add a group; for administrators. */
  addGroup(name: string, data: IGroupChange): Promise<void>;
  /** Change a group: what is given of it. */
  changeGroup(name: string, data: IGroupChange): Promise<void>;
  /** Remove a group; that of all users then lets everyone use everything. For administrators. */
  removeGroup(name: string): Promise<void>;
  /** Where messages about the caller's jobs go, the oldest first. */
  notifications(): Promise<readonly INotification[]>;
  /** Have messages sent from now on. */
  addNotification(data: INewNotification): Promise<INotification>;
  /** Have a test message sent; when it was tried, `triedAt` changes. */
  testNotification(id: string): Promise<void>;
  /** End a notification, with what is on its way. */
  removeNotification(id: string): Promise<void>;
  /** What was held in a time, told apart by one of these, as far as the caller may know it. */
  usage(
    by: 'user' | 'group' | 'vc' | 'type' | 'day',
    bounds: { readonly since: string; readonly until?: string }
  ): Promise<IUsage>;
  /** The budgets that concern the caller, with what of each is used. */
  budgets(): Promise<readonly IBudget[]>;
  /** Who uses the cluster, and who waits. */
  use(): Promise<IClusterUse>;
  /** Running tasks that the database does not know; for administrators. */
  orphans(): Promise<readonly IOrphan[]>;
  /** What jobs of a virtual cluster may do; for who may use it. */
  vcRules(vc: string): Promise<IVcRules>;
  /** Set some of its rules; for its managers and administrators. */
  changeVcRules(vc: string, change: Partial<IVcRules['rules']>): Promise<void>;
  /** GPUs that are reserved for a time, where the user may see it. */
  reservations(): Promise<IReservationList>;
  /** Reserve GPUs; for managers of the virtual cluster and administrators. */
  reserve(made: INewReservation): Promise<void>;
  /** Remove a reservation; for who may make it. */
  removeReservation(id: string): Promise<void>;
  /** What administrators announce to all users now. */
  announcement(): Promise<IAnnouncement | null>;
  /** Have one of them end; for administrators. */
  endOrphan(task: string): Promise<void>;
  /** A one-time sign-in to a service. */
  ticket(
    job: string,
    label: string,
    role?: string,
    index?: number
  ): Promise<ITicket>;
  /** Who may enter whose jobs, as far as it concerns the user. */
  shares(): Promise<IShares>;
  /** With whom a job of the user is shared, its links included. */
  jobShares(job: string): Promise<readonly IShare[]>;
  /** A private key of a job's own; for its owner, while the job has not ended. */
  jobKey(job: string, format: KeyFormat): Promise<IKeyFile>;
  /** Let another user open a service of a job, for `lifetimeS` seconds. */
  share(
    job: string,
    user: string,
    label: string,
    lifetimeS: number
  ): Promise<void>;
  /** Make a link for reading a service of a job, without an account; its address is told this once. */
  makeLink(job: string, label: string, lifetimeS: number): Promise<string>;
  /** End the share with a user, or the link of that name. */
  endShare(job: string, user: string): Promise<void>;
  /** How programs reach a running task; of the job's first one. */
  guide(job: string): Promise<IGuide>;
  /** Have VS Code's server run in the job's first task. */
  codeServer(job: string): Promise<ICodeServer>;
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
  /** Lines of a log that match a regular expression, in a part of it from a byte on. */
  searchLog(
    job: string,
    target: ILogTarget,
    pattern: string,
    ignoreCase: boolean,
    offset: number
  ): Promise<ILogMatches>;
  /** When a part of a log came. */
  logTimes(
    job: string,
    target: ILogTarget,
    offset: number,
    limit: number
  ): Promise<ILogTimes>;
  /** The address of a whole log as a file. */
  logFile(job: string, target: ILogTarget): string;
  /** Kernels of the Jupyter server in jobs. Asking refreshes its list of kernel specs, too. */
  kernels(): Promise<readonly IJobKernel[]>;
  /** Mark a job as one that ends with its kernel. */
  markForKernel(job: string): Promise<void>;
  /** A job as a notebook holds it, form by form. */
  output(job: string): Promise<IJobBundle>;
  /** Run a notebook of the Jupyter server as a job. */
  runNotebook(run: INotebookRequest): Promise<IJobDetail>;
  /** Run a program of the Jupyter server as a job. */
  runProgram(run: IProgramRequest): Promise<IJobDetail>;
  /** Keep a folder of the Jupyter server at the backend; what documents call it. */
  sendFolder(path: string): Promise<{ readonly codeDir: string }>;
  /** How far a job is with its notebook. */
  notebookRun(job: string): Promise<INotebookRun>;
  /** Put the notebook with its outputs among the files of the Jupyter server. */
  fetchNotebook(job: string): Promise<IFetchedNotebook>;
  /** Submit a document as a sweep: a job for each combination of values. */
  submitSweep(sweep: ISweepRequest): Promise<ISubmittedSweep>;
  /** The jobs of a sweep of the user's with their values. */
  sweep(name: string): Promise<ISweepShown>;
  /** Submit all jobs of a sweep again, as a sweep of another name. */
  cloneSweep(name: string, copy: string): Promise<ISubmittedSweep>;
  /** The user's backends. */
  contexts(): Promise<IContextList>;
  /** Use another backend from now on. */
  useContext(name: string): Promise<IContextList>;
  /** Events of all jobs, from `position` on or from now. */
  allEvents(position: number | string | null): WebSocket;
  /** Events of one job after number `after`. */
  jobEvents(job: string, after: number): WebSocket;
  /** A log followed from byte `offset`. */
  followLog(
    job: string,
    target: ILogTarget,
    offset: number,
    timestamps: boolean
  ): WebSocket;
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
  /** How many jobs run and wait; while a keyword is given, as it was before. */
  readonly running: number;
  readonly waiting: number;
  /** Who may enter what; empty until it is known. */
  readonly shares: IShares;
  /** What administrators tell all users; null: nothing, or not known yet. */
  readonly announcement: IAnnouncement | null;
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
  /** Emitted with each event of a job that is pushed. */
  readonly happened: ISignal<IJobListModel, IJobEvent>;
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
