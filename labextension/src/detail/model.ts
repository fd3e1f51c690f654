/**
 * One job in full, kept current until it has ended.
 */

import type { IDisposable } from '@lumino/disposable';
import { Poll, Throttler } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import { asPaiError, PaiError } from '../problem';
import { orLate } from '../request';
import { ResumedStream } from '../stream';
import { LogModel } from '../log/model';
import type { ILogTarget, IPaiClient } from '../tokens';
import type { IJobEvent, IWhy } from '../types';
import { isFinal } from '../types';
import type { DetailTab, IDetailState } from './state';
import { EMPTY, hasLog, tasksOf, uidOfRun } from './state';

/** The safety net behind the pushed events, in milliseconds. */
const POLL = { interval: 15 * 1000, backoff: true, max: 60 * 1000 };

/** How often the cells of a notebook are looked at while it runs, in milliseconds. */
const CELLS = { interval: 1000, backoff: true, max: 15 * 1000 };

/** A burst of events costs one request in this time, in milliseconds. */
const BURST = 200;

/** A burst of events costs one request for the history in this time, in milliseconds: its answer may be long. */
const HISTORY_BURST = 2000;

export type {
  DetailTab,
  IDetailState,
  IDocuments,
  IOtherDocument
} from './state';
export { DAY, HOUR, tasksOf, WEEK } from './state';

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
    this._cells = new Poll({
      auto: false,
      factory: () => this._loadNotebook(),
      frequency: CELLS,
      name: `jupyter-pai:cells-${job}`,
      standby: 'when-hidden'
    });
    this._burst = new Throttler(() => this._poll.refresh(), {
      limit: BURST,
      edge: 'trailing'
    });
    this._history = new Throttler(() => this._loadHistory(), {
      limit: HISTORY_BURST,
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

  /** Show a part of the page, and read what it needs. */
  showTab(tab: DetailTab): void {
    this._update({ tab });
    void (tab === 'notebook' ? this._cells.start() : this._cells.stop());
    if (tab === 'history') {
      void this._loadHistory();
    } else if (tab === 'metrics') {
      void this._loadMetrics();
    } else if (tab === 'document' && this._state.documents === null) {
      void this._loadDocument();
    }
  }

  /** Show another output. */
  showLog(target: ILogTarget): void {
    this._update({ target, tab: 'logs' });
  }

  /** Show lines of logs with the times at which they came, or without: of this one and of those opened later. */
  showTimes(timed: boolean): void {
    this._timed = timed;
    void this._state.log?.showTimes(timed);
  }

  /** Show what tasks used in the last so many seconds. */
  showSpan(span: number): void {
    this._update({ span });
    void this._loadMetrics();
  }

  /** Compare with the document of another job; with an empty name no longer. */
  async compare(name: string): Promise<void> {
    await this._read(async () => {
      const other = name && (await this._client.document(name));
      return { other: other ? { name, text: other.text } : null };
    });
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._state.log?.dispose();
    this._stream?.dispose();
    this._burst.dispose();
    this._cells.dispose();
    this._history.dispose();
    this._poll.dispose();
    Signal.clearData(this);
  }

  /** Ask for the job and apply the answer unless a later one was applied. Rejects with PaiError. */
  private async _load(): Promise<void> {
    const turn = ++this._asked;
    try {
      const job = await orLate(this._client.job(this.name), problem =>
        this._tell(this._state.job && { problem })
      );
      this._apply(turn, { job, problem: null });
    } catch (reason) {
      const problem = asPaiError(reason);
      this._apply(turn, { problem });
      throw problem;
    }
    this._follow();
    if (this._state.tab === 'history') {
      void this._history.invoke();
    } else if (this._state.tab === 'metrics') {
      await this._loadMetrics();
    }
    await this._explain(turn);
  }

  /** Add what `read` gives to the state, or say why it could not be read. */
  private async _read(
    read: () => Promise<Partial<IDetailState>>
  ): Promise<void> {
    let change: Partial<IDetailState>;
    try {
      change = { problem: null, ...(await read()) };
    } catch (reason) {
      change = { problem: asPaiError(reason) };
    }
    this._tell(change);
  }

  /** Rejects with PaiError, so that the next look comes later. */
  private async _loadNotebook(): Promise<void> {
    const wasOver = this._state.job !== null && isFinal(this._state.job.state);
    try {
      const notebook = await this._client.notebookRun(this.name);
      this._tell({ notebook, problem: null });
    } catch (reason) {
      const problem = asPaiError(reason);
      this._tell({ problem });
      throw problem;
    }
    if (wasOver) {
      void this._cells.stop();
    }
  }

  private async _loadHistory(): Promise<void> {
    const turn = ++this._historyAsked;
    await this._read(async () => {
      const [attempts, events] = await Promise.all([
        this._client.attempts(this.name),
        this._client.events(this.name, this._told)
      ]);
      if (turn !== this._historyAsked) {
        return {};
      }
      this._told = events[events.length - 1]?.seq ?? this._told;
      const ofJob = events.filter(event => event.type.startsWith('job.'));
      return { attempts, timeline: [...this._state.timeline, ...ofJob] };
    });
  }

  private async _loadMetrics(): Promise<void> {
    const { span } = this._state;
    await this._read(async () => {
      const metrics = await this._client.metrics(this.name, span);
      return this._state.span === span ? { metrics } : {};
    });
  }

  private async _loadDocument(): Promise<void> {
    await this._read(async () => {
      const submitted = await this._client.document(this.name);
      const { spec } = await this._client.validate(submitted);
      const resolved = spec ? JSON.stringify(spec, null, 2) : '';
      return { documents: { submitted, resolved } };
    });
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

  private _tell(change: Partial<IDetailState> | null): void {
    if (change && !this._isDisposed) {
      this._update(change);
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
      connected: live => {
        this._update({ live });
        void this._burst.invoke(); // of a stream that broke only a request tells why
      },
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
    if (!state.job || (state.tab !== 'logs' && !state.log)) {
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
    if (!target || !task) {
      return { ...state, target: target ?? null };
    }
    const attempt = target.attempt ?? task.attempt;
    const uid = uidOfRun(task, attempt);
    if (log?.taskUid === uid && log.target === target) {
      return { ...state, target };
    }
    log?.dispose();
    return {
      ...state,
      target,
      log: hasLog(task, attempt) ? this._openLog(target, uid) : null
    };
  }

  /** The log of a task's latest run, for its caller to own; null where there is none. */
  openLog(target: ILogTarget): LogModel | null {
    const { job } = this._state;
    const task = (job ? tasksOf(job) : []).find(
      ({ role, index }) => role === target.role && index === target.index
    );
    return task && hasLog(task, task.attempt)
      ? this._openLog(target, task.uid)
      : null;
  }

  private _openLog(target: ILogTarget, uid: string): LogModel {
    const { _client: client, name, _timed: timed } = this;
    const log = new LogModel(client, name, target, uid, timed);
    log.start();
    return log;
  }

  private _applied = 0;
  private _asked = 0;
  private readonly _burst: Throttler;
  private readonly _cells: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _client: IPaiClient;
  private readonly _history: Throttler;
  private _historyAsked = 0;
  private _isDisposed = false;
  private readonly _poll: Poll;
  private _seq = 0;
  private _state = EMPTY;
  private _stream: ResumedStream | null = null;
  private _timed = false;
  /** Number of the last event in the timeline. */
  private _told = 0;
}
