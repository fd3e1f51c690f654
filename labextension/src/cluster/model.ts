/**
 * The use of the cluster, kept current while it is looked at.
 */

import type { IDisposable } from '@lumino/disposable';
import { Poll, Throttler } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../problem';
import { asPaiError } from '../problem';
import { ResumedStream } from '../stream';
import type { IPaiClient } from '../tokens';
import type {
  IClusterUse,
  IOrphan,
  IReservationList,
  IPositionedEvent,
  IWaitingJob
} from '../types';

/** The safety net behind the pushed events, and the way to hear of other users' jobs; in milliseconds. */
const POLL = { interval: 10 * 1000, backoff: true, max: 60 * 1000 };

/** A burst of events costs one request in this time, in milliseconds. */
const BURST = 500;

const NOT_RESERVED: IReservationList = { data: [], mayReserve: [] };

/** What is known of the cluster. */
export interface IClusterState {
  /** Null until the first answer. */
  readonly use: IClusterUse | null;
  /** Running tasks that the database does not know; none for those who may not see them. */
  readonly orphans: readonly IOrphan[];
  /** What is reserved; nothing where the backend cannot tell. */
  readonly reservations: IReservationList;
  /** Whether changes are pushed at this moment. */
  readonly live: boolean;
  /** Why the picture may be out of date. */
  readonly problem: PaiError | null;
}

/** The model of the cluster's page. */
export class ClusterModel implements IDisposable {
  constructor(options: ClusterModel.IOptions) {
    this._client = options.client;
    this._poll = new Poll({
      auto: false,
      factory: () => this._load(),
      frequency: POLL,
      name: 'jupyter-pai:cluster',
      standby: () => this._rests()
    });
    this._rests = options.rests ?? (() => document.hidden);
    this._burst = new Throttler(() => this._poll.refresh(), {
      limit: BURST,
      edge: 'trailing'
    });
  }

  get state(): IClusterState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** A waiting job that the user may see, by uid or id. */
  waiting(job: string): IWaitingJob | null {
    const rows = this._state.use?.virtualClusters.flatMap(each => each.queue);
    return rows?.find(each => each.uid === job || each.id === job) ?? null;
  }

  /** Begin to follow the cluster. */
  start(): void {
    void this._poll.start();
  }

  /** Read everything again; resolves when it has been applied. */
  async refresh(): Promise<void> {
    try {
      await this._load();
    } catch {
      // The state says what is wrong; the poll tries again.
    }
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

  /** Ask and apply the answer unless a later one was applied. Rejects with PaiError. */
  private async _load(): Promise<void> {
    const turn = ++this._asked;
    try {
      const [use, reservations] = await Promise.all([
        this._client.use(),
        this._client.reservations().catch(() => NOT_RESERVED)
      ]);
      const orphans = use.admin ? await this._client.orphans() : [];
      this._apply(turn, { use, orphans, reservations, problem: null });
    } catch (reason) {
      const problem = asPaiError(reason);
      this._apply(turn, { problem });
      throw problem;
    }
    this._follow();
  }

  private _apply(turn: number, change: Partial<IClusterState>): void {
    if (turn > this._applied && !this._isDisposed) {
      this._applied = turn;
      this._update(change);
    }
  }

  private _follow(): void {
    if (this._isDisposed) {
      return;
    }
    this._stream ??= new ResumedStream({
      open: () => this._client.allEvents(this._position),
      receive: data => {
        const message = JSON.parse(String(data)) as IPositionedEvent;
        this._position = message.position;
        this._hear();
      },
      connected: live => {
        this._update({ live });
        // What happened without a listener is not pushed again to a stream without a position.
        if (live) {
          this._hear();
        }
      }
    });
  }

  /** Something has changed. While it is not looked at, it is read later: it costs the backend work. */
  private _hear(): void {
    if (!this._rests()) {
      void this._burst.invoke();
    }
  }

  private _update(change: Partial<IClusterState>): void {
    this._state = { ...this._state, ...change };
    this._changed.emit();
  }

  private _applied = 0;
  private _asked = 0;
  private readonly _burst: Throttler;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _client: IPaiClient;
  private _isDisposed = false;
  private readonly _poll: Poll;
  private _position: number | string | null = null;
  private readonly _rests: () => boolean;
  private _state: IClusterState = {
    use: null,
    orphans: [],
    reservations: NOT_RESERVED,
    live: false,
    problem: null
  };
  private _stream: ResumedStream | null = null;
}

/** Options of {@link ClusterModel}. */
export namespace ClusterModel {
  /** What the picture is made from. */
  export interface IOptions {
    readonly client: IPaiClient;
    /** Whether it is not looked at now; while the browser's tab is hidden when absent. */
    readonly rests?: () => boolean;
  }
}
