/**
 * The job list: what is shown, kept current by pushed events and a slow poll behind them.
 */

import { Poll, Throttler } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import { asPaiError } from '../problem';
import { orLate } from '../request';
import { ResumedStream } from '../stream';
import type {
  IJobListModel,
  IJobListState,
  IPaiClient,
  JobScope
} from '../tokens';
import type { IJobEvent, IJobSummary, IPositionedEvent } from '../types';

/** Jobs asked for at first and more with each {@link JobListModel.showMore}. */
const PAGE = 100;

/** The safety net behind the pushed events, in milliseconds. */
const POLL = { interval: 10 * 1000, backoff: true, max: 60 * 1000 };

/** How long an answer about shares and announcements counts while events come, in milliseconds: they change by hand. */
const SHARES_REST = 10 * 1000;

/** A burst of events (a job with many tasks) costs one request in this time, in milliseconds. */
const BURST = 300;

/** Jobs in these states come first, however many wait. */
const ON_NODES = ['RUNNING', 'STOPPING'] as const;

const ACTIVE = ['WAITING', 'RUNNING', 'STOPPING'] as const;

/** Jobs that are on nodes no longer and keep their place all the same, at most. */
const MOST_HELD = 20;

/**
 * The rows of the list: jobs on nodes, then the others, each the newest first. A job that was `held` among the first
 * keeps its place when it ends: rows are not to move under the pointer, and its end is seen where it ran.
 */
export function inPlace(
  onNodes: readonly IJobSummary[],
  page: readonly IJobSummary[],
  held: ReadonlySet<string>
): { readonly jobs: IJobSummary[]; readonly held: ReadonlySet<string> } {
  const running = new Set(onNodes.map(job => job.uid));
  const others = page.filter(job => !running.has(job.uid));
  const kept = others.filter(job => held.has(job.uid)).slice(0, MOST_HELD);
  const first = [...onNodes];
  for (const job of kept) {
    const below = first.findIndex(
      each => each.submissionTime < job.submissionTime
    );
    first.splice(below < 0 ? first.length : below, 0, job);
  }
  return {
    jobs: [...first, ...others.filter(job => !kept.includes(job))],
    held: new Set(first.map(job => job.uid))
  };
}

const EMPTY: IJobListState = {
  jobs: [],
  total: 0,
  running: 0,
  waiting: 0,
  shares: { received: [], given: [] },
  announcement: null,
  keyword: '',
  scope: 'all',
  selected: null,
  loaded: false,
  live: false,
  problem: null
};

/** {@link IJobListModel} over the backend. */
export class JobListModel implements IJobListModel {
  constructor(options: JobListModel.IOptions) {
    this._client = options.client;
    this._poll = new Poll({
      auto: false,
      factory: () => this._load(),
      frequency: POLL,
      name: 'jupyter-pai:jobs',
      standby: options.standby ?? 'when-hidden'
    });
    this._burst = new Throttler(() => this._poll.refresh(), {
      limit: BURST,
      edge: 'trailing'
    });
  }

  get state(): IJobListState {
    return this._state;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get deleted(): ISignal<this, string> {
    return this._deleted;
  }

  get restarted(): ISignal<this, string> {
    return this._restarted;
  }

  get happened(): ISignal<this, IJobEvent> {
    return this._happened;
  }

  get selectedJob(): IJobSummary | null {
    const { jobs, selected } = this._state;
    return jobs.find(job => job.uid === selected) ?? null;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Begin to follow the backend; without it the list changes only by {@link refresh}. */
  start(): void {
    this._started = true;
    void this._poll.start();
  }

  async refresh(): Promise<void> {
    this._sharesAsked = 0;
    this._held = new Set();
    try {
      await this._load();
    } catch {
      // The state says what is wrong; the poll tries again.
    }
  }

  select(uid: string | null): void {
    if (uid !== this._state.selected) {
      this._update({ selected: uid });
    }
  }

  setKeyword(keyword: string): void {
    this._ask({ keyword });
  }

  setScope(scope: JobScope): void {
    this._ask({ scope });
  }

  showMore(): void {
    this._limit += PAGE;
    this._ask({});
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._stream?.dispose();
    this._burst.dispose();
    this._poll.dispose();
    Signal.clearData(this);
  }

  /** Another question: answers to earlier ones are no longer wanted. */
  private _ask(change: Partial<IJobListState>): void {
    this._applied = ++this._asked;
    this._update(change);
    void this.refresh();
  }

  /** Ask for the list and apply the answer unless a later one was applied. Rejects with PaiError. */
  private async _load(): Promise<void> {
    const turn = ++this._asked;
    const { keyword, scope } = this._state;
    const states = scope === 'active' ? ACTIVE : [];
    try {
      const limit = this._limit;
      const asked = Promise.all([
        this._client.jobs({ keyword, states, limit }),
        this._client.jobs({ keyword, states: ON_NODES, limit }),
        this._client.jobs({ keyword, states: ['WAITING'], limit: 0 })
      ]);
      const [page, running, waiting] = await orLate(asked, problem => {
        if (this._state.loaded && turn > this._applied && !this._isDisposed) {
          this._update({ problem });
        }
      });
      const { jobs, held } = inPlace(running.data, page.data, this._held);
      if (turn > this._applied) {
        this._held = held;
      }
      this._apply(turn, {
        jobs,
        total: page.totalCount,
        ...(!keyword && {
          running: running.totalCount,
          waiting: waiting.totalCount
        }),
        loaded: true,
        problem: null
      });
      this._follow();
      void this._loadShares(turn);
    } catch (reason) {
      const problem = asPaiError(reason);
      this._apply(turn, { problem, loaded: true });
      throw problem;
    }
  }

  /** Ask who may enter what. The list stands without it: a site may keep keys and shares to its shells. */
  private async _loadShares(turn: number): Promise<void> {
    if (Date.now() < this._sharesAsked + SHARES_REST) {
      return;
    }
    this._sharesAsked = Date.now();
    void this._loadAnnouncement();
    const shares = await this._client.shares().catch(() => null);
    if (shares !== null && turn >= this._sharesOf && !this._isDisposed) {
      this._sharesOf = turn;
      this._update({ shares });
    }
  }

  private _apply(turn: number, change: Partial<IJobListState>): void {
    if (turn > this._applied && !this._isDisposed) {
      this._applied = turn;
      this._update(change);
    }
  }

  /** Follow events, once the backend has answered: sockets to a missing server only fill the console. */
  private _follow(): void {
    if (this._stream || this._isDisposed || !this._started) {
      return;
    }
    this._stream = new ResumedStream({
      open: () => this._client.allEvents(this._position),
      receive: data => {
        const message = JSON.parse(String(data)) as IPositionedEvent;
        this._position = message.position;
        if (message.event.type === 'job.deleted') {
          this._deleted.emit(message.event.job);
        }
        if (message.event.type === 'job.restart-requested') {
          this._restarted.emit(message.event.job);
        }
        this._happened.emit(message.event);
        void this._burst.invoke();
      },
      connected: live => {
        this._update({ live });
        // What happened without a listener is not pushed again to a stream without a position; and of a stream that
        // broke only a request tells why.
        void this._burst.invoke();
      }
    });
  }

  private _update(change: Partial<IJobListState>): void {
    this._state = { ...this._state, ...change };
    this._changed.emit();
  }

  private _applied = 0;
  private _asked = 0;
  private readonly _burst: Throttler;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _deleted = new Signal<this, string>(this);
  private readonly _happened = new Signal<this, IJobEvent>(this);
  private readonly _client: IPaiClient;
  /** Jobs that keep their place among the first until the list is asked for by hand. */
  private _held: ReadonlySet<string> = new Set();
  private _isDisposed = false;
  private _limit = PAGE;
  private readonly _poll: Poll;
  private _position: number | string | null = null;
  private readonly _restarted = new Signal<this, string>(this);
  /** Ask what is announced. The list stands without it: a token may not be for reading. */
  private async _loadAnnouncement(): Promise<void> {
    const found = await this._client.announcement().catch(() => undefined);
    if (found !== undefined && !this._isDisposed) {
      this._update({ announcement: found });
    }
  }

  private _sharesAsked = 0;
  private _sharesOf = 0;
  private _started = false;
  private _state = EMPTY;
  private _stream: ResumedStream | null = null;
}

/** Options of {@link JobListModel}. */
export namespace JobListModel {
  /** What the list is made from. */
  export interface IOptions {
    readonly client: IPaiClient;
    /** Whether polling rests now; while the page is hidden when absent. */
    readonly standby?: Poll.Standby | (() => boolean | Poll.Standby);
  }
}
