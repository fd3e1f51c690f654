/**
 * How a task is reached, and which programs will work with it.
 */

import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../request';
import { asPaiError } from '../request';
import type { IPaiClient } from '../tokens';
import type { IDoctorReport, IGuide } from '../types';

/** What is known of the way to a task. */
export interface IConnectState {
  /** Null until the first answer. */
  readonly guide: IGuide | null;
  /** What the doctor found; null until it was asked. */
  readonly report: IDoctorReport | null;
  /** Whether the doctor is at work. */
  readonly examining: boolean;
  /** Why something is missing. */
  readonly problem: PaiError | null;
}

/** The model of what is shown about connecting to a job. */
export class ConnectModel implements IDisposable {
  /** `job` is what the backend knows it by: uid, id or alias. */
  constructor(client: IPaiClient, job: string) {
    this._client = client;
    this._job = job;
  }

  get state(): IConnectState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Ask how the task is reached; resolves when that has been applied. */
  async load(): Promise<void> {
    try {
      const guide = await this._client.guide(this._job);
      this._update({ guide, problem: null });
    } catch (reason) {
      this._update({ problem: asPaiError(reason) });
    }
  }

  /** Let the doctor try; while it is at work, asking again does nothing. */
  async examine(): Promise<void> {
    if (this._state.examining) {
      return;
    }
    this._update({ examining: true, problem: null });
    try {
      const report = await this._client.doctor(this._job);
      this._update({ report, examining: false });
    } catch (reason) {
      this._update({ problem: asPaiError(reason), examining: false });
    }
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private _update(change: Partial<IConnectState>): void {
    if (!this._isDisposed) {
      this._state = { ...this._state, ...change };
      this._changed.emit();
    }
  }

  private readonly _client: IPaiClient;
  private readonly _job: string;
  private readonly _changed = new Signal<this, void>(this);
  private _isDisposed = false;
  private _state: IConnectState = {
    guide: null,
    report: null,
    examining: false,
    problem: null
  };
}
