/**
 * The notifications of the user, kept current while they are looked at.
 */

import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../problem';
import { asPaiError } from '../problem';
import type { IPaiClient } from '../tokens';
import type { INotification } from '../types';

/** Messages arrive whenever jobs end; in milliseconds. */
const POLL = { interval: 10 * 1000, backoff: true, max: 60 * 1000 };

/** What is known of them. */
export interface INotificationsState {
  /** The oldest first; null until the first answer. */
  readonly notifications: readonly INotification[] | null;
  /** Ids of those whose test message is on its way. */
  readonly tested: ReadonlySet<string>;
  /** Why the list may be out of date. */
  readonly problem: PaiError | null;
}

/** The model of the page of notifications. */
export class NotificationsModel implements IDisposable {
  /** `rests` says when the page is not looked at. */
  constructor(
    private readonly _client: IPaiClient,
    rests: () => boolean = () => document.hidden
  ) {
    this._poll = new Poll({
      auto: false,
      factory: () => this._load(),
      frequency: POLL,
      name: 'jupyter-pai:notifications',
      standby: rests
    });
  }

  get state(): INotificationsState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The notification of that id. */
  notification(id: unknown): INotification | null {
    return this._state.notifications?.find(each => each.id === id) ?? null;
  }

  /** Begin to follow them. */
  start(): void {
    void this._poll.start();
  }

  /** Read all again; the state says what went wrong. */
  async refresh(): Promise<void> {
    try {
      await this._load();
    } catch {
      // The state says what is wrong; the poll tries again.
    }
  }

  /** Say that a test message is on its way, or no longer. */
  setTested(id: string, isTested: boolean): void {
    const tested = new Set(this._state.tested);
    if (isTested) {
      tested.add(id);
    } else {
      tested.delete(id);
    }
    this._apply({ tested });
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._poll.dispose();
      Signal.clearData(this);
    }
  }

  /** Ask and apply the answer unless a later one was applied. Rejects with PaiError. */
  private async _load(): Promise<void> {
    const turn = ++this._asked;
    try {
      const notifications = await this._client.notifications();
      this._applyTurn(turn, { notifications, problem: null });
    } catch (reason) {
      const problem = asPaiError(reason);
      this._applyTurn(turn, { problem });
      throw problem;
    }
  }

  private _applyTurn(turn: number, change: Partial<INotificationsState>): void {
    if (turn > this._applied) {
      this._applied = turn;
      this._apply(change);
    }
  }

  private _apply(change: Partial<INotificationsState>): void {
    if (!this._isDisposed) {
      this._state = { ...this._state, ...change };
      this._changed.emit();
    }
  }

  private _applied = 0;
  private _asked = 0;
  private _changed = new Signal<this, void>(this);
  private _isDisposed = false;
  private readonly _poll: Poll;
  private _state: INotificationsState = {
    notifications: null,
    tested: new Set(),
    problem: null
  };
}
