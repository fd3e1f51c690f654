/**
 * One job in full, kept current until it has ended.
 */

import type { IDisposable } from '@lumino/disposable';
import { Poll, Throttler } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import { asPaiError, PaiError } from '../request';
import { ResumedStream } from '../stream';
import { LogModel } from '../log/model';
import type { ILogTarget, IPaiClient } from '../tokens';
import type { IJobDetail, IJobEvent, ITask, IWhy } from '../types';
import { isFinal } from '../types';

/** The safety net behind the pushed events, in milliseconds. */
const POLL = { interval: 15 * 1000, backoff: true, max: 60 * 1000 };

/** A burst of events costs one request in this time, in milliseconds. */
const BURST = 200;

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
  /** Whose output is shown; null until the job is known. */
  readonly target: ILogTarget | null;
  /** That output; null while the task has not started. */
  readonly log: LogModel | null;
}

const EMPTY: IDetailState = {
  job: null,
  why: null,
  live: false,
  problem: null,
  target: null,
  log: null
};

/** All tasks of a job, in the order of the document. */
export function tasksOf(job: IJobDetail): readonly ITask[] {
  return job.taskRoles.flatMap(role => role.taskStatuses);
}

/** Whether a task has written, or can have written, output. */
function hasLog(task: ITask): boolean {
  return task.startedTime !== null;
}

/** The model of a job's page. */
export class DetailModel implements IDisposable {
  /** `job` is what the backend knows it by: uid, id or alias. */
  constructor(client: IPaiClient, job: string) {
    this.name = job;
    this._client = client;
    this._poll = new Poll({
      auto: false,
      factory: () => this._load(),
      frequency: POLL,
      name: `jupyter-pai:job-${job}`,
      standby: 'when-hidden'
    });
    this._burst = new Throttler(() => this._poll.refresh(), {
      limit: BURST,
      edge: 'trailing'
    });
  }

  /** What the job was opened by. */
  readonly name: string;

  get state(): IDetailState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Begin to follow the job, or follow it again after its end. */
  start(): void {
    void this._poll.start();
  }

  /** Read the job again; resolves when it has been applied. */
  async refresh(): Promise<void> {
    try {
      await this._load();
    } catch {
      // The state says what is wrong; the poll tries again.
    }
  }

  /** Show another output. */
  showLog(target: ILogTarget): void {
    this._update({ target });
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._state.log?.dispose();
    this._stream?.dispose();
    this._burst.dispose();
    this._poll.dispose();
    Signal.clearData(this);
  }

  /** Ask for the job and apply the answer unless a later one was applied. Rejects with PaiError. */
  private async _load(): Promise<void> {
    const turn = ++this._asked;
    try {
      const job = await this._client.job(this.name);
      this._apply(turn, { job, problem: null });
    } catch (reason) {
      const problem = asPaiError(reason);
      this._apply(turn, { problem });
      throw problem;
    }
    this._follow();
    await this._explain(turn);
  }

  /** Ask why the job waits, if it does. Where that is not known, its own sentence stays. */
  private async _explain(turn: number): Promise<void> {
    let why: IWhy | null = null;
    if (this._state.job?.phase === 'queued') {
      try {
        why = await this._client.why(this.name);
      } catch (reason) {
        // Of a backend that is away the next look at the job tells; an older one has no answer at all.
        if (!(reason instanceof PaiError)) {
          throw reason;
        }
      }
    }
    if (
      turn === this._applied &&
      !this._isDisposed &&
      why !== this._state.why
    ) {
      this._update({ why });
    }
  }

  private _apply(turn: number, change: Partial<IDetailState>): void {
    if (turn > this._applied && !this._isDisposed) {
      this._applied = turn;
      this._update(change);
    }
  }

  private _follow(): void {
    const { job } = this._state;
    if (!job || this._isDisposed) {
      return;
    }
    if (isFinal(job.state)) {
      void this._poll.stop();
      return;
    }
    this._stream ??= new ResumedStream({
      open: () => this._client.jobEvents(this.name, this._seq),
      receive: data => {
        this._seq = (JSON.parse(String(data)) as IJobEvent).seq;
        void this._burst.invoke();
      },
      connected: live => this._update({ live }),
      completed: () => {
        this._stream = null;
        void this.refresh();
      }
    });
  }

  private _update(change: Partial<IDetailState>): void {
    this._state = this._withLog({ ...this._state, ...change });
    this._changed.emit();
  }

  /** The state with the log that its job and target call for; a retried task has a new one. */
  private _withLog(state: IDetailState): IDetailState {
    if (!state.job) {
      return state;
    }
    const tasks = tasksOf(state.job);
    const [first] = tasks;
    const target =
      state.target ??
      (first && { role: first.role, index: first.index, stream: 'all' });
    const task = tasks.find(
      ({ role, index }) => role === target?.role && index === target.index
    );
    const { log } = state;
    if (
      !target ||
      !task ||
      (log?.taskUid === task.uid && log.target === target)
    ) {
      return { ...state, target: target ?? null };
    }
    log?.dispose();
    return {
      ...state,
      target,
      log: hasLog(task) ? this._openLog(target, task) : null
    };
  }

  private _openLog(target: ILogTarget, task: ITask): LogModel {
    const log = new LogModel(this._client, this.name, target, task.uid);
    log.start();
    return log;
  }

  private _applied = 0;
  private _asked = 0;
  private readonly _burst: Throttler;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _client: IPaiClient;
  private _isDisposed = false;
  private readonly _poll: Poll;
  private _seq = 0;
  private _state = EMPTY;
  private _stream: ResumedStream | null = null;
}
