/**
 * How a task is reached, and which programs will work with it.
 */

import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../problem';
import { asPaiError } from '../problem';
import type { IKeyFile, IPaiClient, KeyFormat } from '../tokens';
import type { IDoctorReport, IGuide, IShare } from '../types';
import { isFinal } from '../types';

/** What is known of the way to a task. */
export interface IConnectState {
  /** Null until the first answer. */
  readonly guide: IGuide | null;
  /** What the doctor found; null until it was asked. */
  readonly report: IDoctorReport | null;
  /** Whether the doctor is at work. */
  readonly examining: boolean;
  /** With whom the job is shared, its links included; null when it is not the user's own, or not yet known. */
  readonly shares: readonly IShare[] | null;
  /** Labels of the services that can be shared. */
  readonly labels: readonly string[];
  /** The address of a link that was made just now. */
  readonly link: string | null;
  /** Whether the user may have the private key of the job. */
  readonly hasKey: boolean;
  /** Whether a private key is on its way. */
  readonly takingKey: boolean;
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

  /** Ask with whom the job is shared. A job of another user has no answer, and none is shown. */
  async loadShares(): Promise<void> {
    try {
      const shares = await this._client.jobShares(this._job);
      const job = await this._client.job(this._job);
      const labels = [...new Set(job.services.map(({ label }) => label))];
      this._update({ shares, labels });
    } catch (reason) {
      const problem = asPaiError(reason);
      this._update({ shares: null });
      if (problem.status !== 404 && problem.status !== 403) {
        this._update({ problem });
      }
    }
  }

  /** Learn whether the backend gives the user the key of the job: to its owner alone, until the job ends. */
  async loadKey(): Promise<void> {
    try {
      const [me, job] = await Promise.all([
        this._client.me(),
        this._client.job(this._job)
      ]);
      const hasKey = job.username === me.username && !isFinal(job.state);
      this._update({ hasKey });
    } catch {
      // A job of another user has no such page for this one, and whatever else is wrong the guide says.
      this._update({ hasKey: false });
    }
  }

  /** A private key of the job, which is kept nowhere here; null where it is refused, and while another is on its way. */
  async takeKey(format: KeyFormat): Promise<IKeyFile | null> {
    if (this._state.takingKey) {
      return null;
    }
    this._update({ takingKey: true, problem: null });
    try {
      const file = await this._client.jobKey(this._job, format);
      this._update({ takingKey: false });
      return this._isDisposed ? null : file;
    } catch (reason) {
      this._update({ takingKey: false, problem: asPaiError(reason) });
      return null;
    }
  }

  /** Share a service with a user, or without one by a link; then ask again what is shared. */
  async share(label: string, user: string, lifetimeS: number): Promise<void> {
    await this._change(async () => {
      if (user) {
        await this._client.share(this._job, user, label, lifetimeS);
      } else {
        const link = await this._client.makeLink(this._job, label, lifetimeS);
        this._update({ link });
      }
    });
  }

  /** End the share with a user, or the link of that name. */
  async endShare(user: string): Promise<void> {
    await this._change(() => this._client.endShare(this._job, user));
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

  private async _change(change: () => Promise<void>): Promise<void> {
    this._update({ link: null, problem: null });
    try {
      await change();
    } catch (reason) {
      this._update({ problem: asPaiError(reason) });
    }
    await this.loadShares();
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
    shares: null,
    labels: [],
    link: null,
    hasKey: false,
    takingKey: false,
    problem: null
  };
}
