/**
 * The users of the backend and their groups, as far as the caller may see them.
 */

import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../problem';
import { asPaiError } from '../problem';
import type { IPaiClient } from '../tokens';
import type { IUser, IUserGroup } from '../types';

/** What is known of them. */
export interface IPeopleState {
  /** The caller; null until the first answer. */
  readonly me: IUser | null;
  /** By name; for those who neither administer nor manage it is themselves alone. */
  readonly users: readonly IUser[];
  /** That of all users first, then that of administrators, then those that were added. */
  readonly groups: readonly IUserGroup[];
  /** Why the list may be out of date. */
  readonly problem: PaiError | null;
}

/** The model of the page of users. */
export class PeopleModel implements IDisposable {
  constructor(private readonly _client: IPaiClient) {}

  get state(): IPeopleState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** A user of that name. */
  user(name: unknown): IUser | null {
    return this._state.users.find(each => each.username === name) ?? null;
  }

  /** A group of that name. */
  group(name: unknown): IUserGroup | null {
    return this._state.groups.find(each => each.groupname === name) ?? null;
  }

  /** Read all again; the state says what went wrong. */
  async refresh(): Promise<void> {
    try {
      const [me, users, groups] = await Promise.all([
        this._client.me(),
        this._client.users(),
        this._client.groups()
      ]);
      const { compare } = new Intl.Collator();
      const sorted = [...users].sort((one, other) =>
        compare(one.username, other.username)
      );
      this._apply({ me, users: sorted, groups, problem: null });
    } catch (reason) {
      this._apply({ ...this._state, problem: asPaiError(reason) });
    }
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private _apply(state: IPeopleState): void {
    if (!this._isDisposed) {
      this._state = state;
      this._changed.emit();
    }
  }

  private _changed = new Signal<this, void>(this);
  private _isDisposed = false;
  private _state: IPeopleState = {
    me: null,
    users: [],
    groups: [],
    problem: null
  };
}
