/**
 * The wire contract of the backend (`docs/rest.md`), as the panel reads it.
 *
 * Field names are the wire's. Times are ISO 8601 UTC strings.
 */

/** States users see; OpenPAI's words. */
export type JobState =
  'WAITING' | 'RUNNING' | 'STOPPING' | 'STOPPED' | 'SUCCEEDED' | 'FAILED';

/** The state in plain words, finer than {@link JobState}. */
export type JobPhase =
  | 'queued'
  | 'pulling'
  | 'starting'
  | 'running'
  | 'backing off'
  | 'kept for debugging'
  | 'stopping'
  | 'ended';

/** Which of a task's outputs is meant. */
export type LogStream = 'all' | 'stdout' | 'stderr';

/** Fields that list rows and details share. */
interface IJobFacts {
  readonly uid: string;
  /** `user~name`; what REST paths are made of. */
  readonly id: string;
  readonly name: string;
  readonly username: string;
  readonly alias: string;
  readonly state: JobState;
  readonly phase: JobPhase;
  /** Why it waits, in one sentence; empty when it does not. */
  readonly why: string;
  readonly virtualCluster: string;
  readonly submissionTime: string;
  readonly launchedTime: string | null;
  readonly completedTime: string | null;
  readonly retries: number;
  readonly totalTaskNumber: number;
  readonly totalGpuNumber: number;
  readonly exitStatus: number | null;
}

/** A list row. */
export interface IJobSummary extends IJobFacts {
  /** How many warnings the job has. */
  readonly warnings: number;
}

/** Something the user should know that stopped nothing. */
export interface IDocumentWarning {
  /** A stable machine word, e.g. `open-jupyter`. */
  readonly code: string;
  readonly message: string;
  /** JSON path in the document; empty when it has no place there. */
  readonly path: string;
  readonly hint: string;
}

/** How a task ended. */
export interface ITaskExit {
  readonly status: number;
  readonly code: number | null;
  readonly signal: number | null;
  readonly reason: string;
  readonly message: string;
  /** Its class, one word of `docs/exits.md`. */
  readonly phrase: string;
  /** What the user can do, in a sentence; may be empty. */
  readonly remedy: string;
}

/** One instance of a role in the job's current attempt. */
export interface ITask {
  readonly uid: string;
  readonly role: string;
  readonly index: number;
  readonly alias: string;
  readonly attempt: number;
  readonly state: JobState;
  readonly phase: JobPhase;
  readonly node: string | null;
  readonly address: string | null;
  readonly gpus: readonly number[];
  readonly gpuType: string | null;
  readonly ports: Readonly<Record<string, readonly number[]>>;
  readonly startedTime: string | null;
  readonly completedTime: string | null;
  readonly exit: ITaskExit | null;
  /** When a task kept for debugging is released by itself; null for others. */
  readonly keptUntil: string | null;
  readonly sshCommand: string | null;
}

/** A group of equal tasks. */
export interface ITaskRole {
  readonly name: string;
  readonly taskStatuses: readonly ITask[];
}

/** A named port of a task, with its address. */
export interface IService {
  readonly label: string;
  readonly role: string;
  readonly index: number;
  readonly alias: string;
  readonly port: number | null;
  readonly url: string;
  readonly pathUrl: string;
  readonly state: JobState;
}

/** Why the job as a whole ended. */
export interface IJobExit {
  readonly status: number;
  readonly message: string;
  /** What the user can do, in a sentence; may be empty. */
  readonly remedy: string;
  readonly role: string | null;
  readonly index: number | null;
}

/** The idle clock of a job with an `idleTimeout`. */
export interface IIdle {
  /** Nothing has used it since; null before it was first looked at. */
  readonly since: string | null;
  /** When it is stopped if nothing uses it before. */
  readonly stopAt: string | null;
  readonly warned: boolean;
  /** The warning, or what holds the clock, in words; else empty. */
  readonly sentence: string;
}

/** Everything about one job. */
export interface IJobDetail extends IJobFacts {
  readonly warnings: readonly IDocumentWarning[];
  readonly dialect: string;
  /** Why this may be out of date: the cluster or a node is away. Absent from older backends. */
  readonly doubt?: string;
  /** What its document says of it. Absent from older backends. */
  readonly description?: string;
  readonly image: string;
  readonly attempt: number;
  readonly stopReason: string;
  readonly exit: IJobExit | null;
  readonly retryDetails: {
    readonly user: number;
    readonly platform: number;
    readonly resource: number;
  };
  readonly version: number;
  readonly sshCommand: string | null;
  readonly taskRoles: readonly ITaskRole[];
  readonly services: readonly IService[];
  readonly idle?: IIdle | null;
}

/** One thing wrong at one place of a document or request. */
export interface IFault {
  readonly path: string;
  readonly message: string;
  /** 1-based; null when the place has no line. */
  readonly line: number | null;
  /** 1-based, in characters. */
  readonly column: number | null;
  readonly hint: string;
}

/** What every failed request answers with. */
export interface IErrorBody {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly request_id: string;
  readonly errors: readonly IFault[];
}

/** The answer of `validate`. */
export interface IVerdict {
  readonly valid: boolean;
  readonly dialect: string | null;
  readonly name: string | null;
  readonly warnings: readonly IDocumentWarning[];
  readonly errors: readonly IFault[];
}

/** One page of the job list. */
export interface IJobPage {
  readonly totalCount: number;
  readonly data: readonly IJobSummary[];
}

/** A one-time sign-in to a service. */
export interface ITicket {
  readonly url: string;
  readonly path_url: string;
  readonly expires_at: string;
}

/** Which kept tasks are let go. */
export interface IReleased {
  readonly message: string;
  /** Their names, `role-index`. */
  readonly tasks: readonly string[];
}

/** Which jobs have changed places in the queue. */
export interface IMoved {
  readonly message: string;
}

/** Cells of one type in one virtual cluster, or of one pinned cell; counted in leaves. */
export interface ICellsUse {
  readonly leafType: string;
  /** Empty for cells that are not pinned. */
  readonly pinnedCell: string;
  /** Cell type to how many of it are owned. */
  readonly shapes: Readonly<Record<string, number>>;
  readonly owned: number;
  /** In use on the virtual cluster's own quota. */
  readonly guaranteed: number;
  /** In use without a claim, whoever owns them. */
  readonly opportunistic: number;
  /** Reserved for jobs that wait until preempted jobs have stopped. */
  readonly reserved: number;
  /** Owned, and not to be had in health. */
  readonly bad: number;
  /** Still free to claim. */
  readonly free: number;
}

/** A job that has a place. */
export interface IRunningJob {
  readonly uid: string;
  readonly id: string;
  readonly name: string;
  readonly username: string;
  readonly tasks: number;
  readonly gpus: number;
  /** Some of it runs without a claim, and ends when the owner comes. */
  readonly opportunistic: boolean;
}

/** A job that waits as a whole. */
export interface IWaitingJob {
  readonly uid: string;
  readonly id: string;
  readonly name: string;
  readonly username: string;
  readonly gpus: number;
  /** Jobs with the same word can change places. */
  readonly queue: string;
  /** Its place among all that wait for the same cells, from 1. */
  readonly position: number;
  /** How many wait for these. */
  readonly waiting: number;
}

/** What a virtual cluster owns and uses, who runs there, and who waits. */
export interface IVirtualClusterUse {
  readonly name: string;
  /** Whether the user may use it. */
  readonly granted: boolean;
  readonly cells: readonly ICellsUse[];
  /** Jobs the user may see, own ones first. */
  readonly running: readonly IRunningJob[];
  /** How many other jobs run there. */
  readonly unlistedJobs: number;
  readonly unlistedGpus: number;
  readonly waiting: number;
  /** Those that wait and the user may see, as they are served. */
  readonly queue: readonly IWaitingJob[];
}

/** A node and what of it is in use. */
export interface INodeUse {
  readonly name: string;
  readonly ready: boolean;
  /** False when nothing new starts there. */
  readonly schedulable: boolean;
  readonly reason: string;
  readonly gpuTypes: readonly string[];
  readonly gpus: number;
  readonly usedGpus: number;
  readonly badGpus: number;
  readonly cpus: number;
  readonly usedCpus: number;
  readonly memoryMb: number;
  readonly usedMemoryMb: number;
}

/** The whole cluster, as far as the user may see it. */
export interface IClusterUse {
  readonly user: string;
  readonly admin: boolean;
  /** No cells are configured: every virtual cluster may use all nodes. */
  readonly shared: boolean;
  readonly virtualClusters: readonly IVirtualClusterUse[];
  readonly nodes: readonly INodeUse[];
}

/** A running task that the backend's database does not know. */
export interface IOrphan {
  /** Its uid, by which it is ended. */
  readonly task: string;
  /** Identity of the database that started it; empty when it does not say. */
  readonly database: string;
  readonly state: string;
  readonly since: string | null;
  readonly seenAt: string;
  /** Why its job was not taken back. */
  readonly why: string;
  /** Who asked for its end, `age` when it was kept for long enough; empty: nobody. */
  readonly endedBy: string;
}

/** All of them. */
export interface IOrphanList {
  readonly data: readonly IOrphan[];
}

/** A reason in words. */
export interface ITold {
  readonly sentence: string;
  readonly remedy: string;
  /** What the time of the start rests on; empty, or missing, when none is told. */
  readonly estimate?: string;
}

/** A group that has what another needs. */
export interface IHolder {
  readonly group: string;
  readonly priority: number;
  readonly gpus: number;
}

/** A limit on what runs at once; of a user when `user` is given, inside one virtual cluster when `vc` is. */
export interface ICap {
  readonly vc: string;
  readonly user: string;
  /** Null when there is no limit of tasks. */
  readonly tasks: number | null;
  readonly gpus: number | null;
  readonly running_tasks: number;
  readonly running_gpus: number;
}

/** Why a job waits for GPUs; `docs/scheduling.md` has all fields. */
export interface IWaiting {
  readonly cause: string;
  readonly vc: string;
  readonly position: number;
  readonly waiting: number;
  readonly starts_at: string | null;
  readonly cap: ICap | null;
  readonly holders: readonly IHolder[];
  /** Language, such as `zh_CN`, to words. */
  readonly texts: Readonly<Record<string, ITold>>;
}

/** Why a job waits, and since when that is known. */
export interface IWhy {
  /** Null when it does not wait for GPUs. */
  readonly waiting: IWaiting | null;
  readonly asOf: string | null;
  /** False when nobody answered in time, and this is what was said before. */
  readonly current: boolean;
  /** Why what is said of the job may be out of date. */
  readonly doubt?: string;
}

/** One line of a job's history. */
export interface IJobEvent {
  readonly job: string;
  readonly seq: number;
  readonly at: string;
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** A message of the stream of all jobs. */
export interface IPositionedEvent {
  /** Where to go on after a break; opaque. */
  readonly position: number | string;
  readonly event: IJobEvent;
}

/** Whether a job or task in this state will change no more. */
export function isFinal(state: JobState): boolean {
  return state === 'STOPPED' || state === 'SUCCEEDED' || state === 'FAILED';
}

/** How programs reach a task. */
export interface IGuide {
  readonly alias: string;
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** Where a login begins. */
  readonly directory: string;
  readonly fingerprint: string;
  /** With the names that `pai ssh-config` writes. */
  readonly command: string;
  readonly links: readonly {
    readonly editor: string;
    readonly name: string;
    readonly url: string;
  }[];
  readonly pycharm: {
    readonly host: string;
    readonly port: number;
    readonly username: string;
    readonly authentication: string;
    readonly interpreter: string;
  };
  /** Who shares the job; null for one's own. */
  readonly sharedBy: string | null;
  /** What the share allows; everything when empty. */
  readonly only: readonly string[];
  /** When the share ends; null: with the job. */
  readonly until: string | null;
}

/** A job that another user may enter by SSH. */
export interface IShare {
  /** `user~name`. */
  readonly job: string;
  readonly uid: string;
  readonly alias: string;
  /** Who may enter. */
  readonly user: string;
  /** What they may do; everything when empty. */
  readonly only: readonly string[];
  readonly expires_at: string | null;
}

/** The backend's answer about shares. */
export interface IShareList {
  readonly data: readonly IShare[];
}

/** Something that keeps a program from working, or makes it work less well. */
export interface IFinding {
  readonly code: string;
  readonly blocking: boolean;
  /** By language; English is always there. */
  readonly texts: Readonly<
    Record<string, { readonly what: string; readonly remedy: string }>
  >;
}

/** Which programs will work with a task. */
export interface IDoctorReport {
  readonly works: boolean;
  readonly clients: readonly {
    readonly client: string;
    readonly name: string;
    readonly works: boolean;
    readonly findings: readonly IFinding[];
  }[];
  /** What could not be removed from the task; empty otherwise. */
  readonly leftBehind: string;
}
