/**
 * The output of one task, followed from its last part on.
 */

import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import { ResumedStream } from '../stream';
import type { ILogTarget, IPaiClient } from '../tokens';

/** Bytes of the past that are read when a log is opened. */
const TAIL_BYTES = 256 * 1024;

/** Characters kept; a browser renders more only slowly. */
const KEEP = 1024 * 1024;

/** The log as far as it is known. */
export interface ILogState {
  /** The last part of the output. */
  readonly text: string;
  /** Changes when `text` does not continue what was there before. */
  readonly generation: number;
  /** Whether output before `text` is not shown. */
  readonly cut: boolean;
  /** Whether new output is pushed at this moment. */
  readonly live: boolean;
  /** Whether all output there will ever be has been read. */
  readonly complete: boolean;
}

/** Everything behind the first line break of `text`; all of it when there is none. */
function fromFullLine(text: string): string {
  return text.slice(text.indexOf('\n') + 1);
}

/** The model of a task's log. */
export class LogModel implements IDisposable {
  /** `taskUid` names the attempt: a retried task has a new log. */
  constructor(
    client: IPaiClient,
    job: string,
    readonly target: ILogTarget,
    readonly taskUid: string
  ) {
    this._client = client;
    this._job = job;
  }

  get state(): ILogState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Read the last part, then follow. */
  start(): void {
    this._stream ??= new ResumedStream({
      open: () => this._open(),
      receive: data => this._append(data as ArrayBuffer),
      connected: live => this._update({ live }),
      completed: () => this._update({ complete: true, live: false })
    });
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._stream?.dispose();
    Signal.clearData(this);
  }

  private async _open(): Promise<WebSocket> {
    if (this._offset === null) {
      await this._readTail();
    }
    return this._client.followLog(this._job, this.target, this._offset ?? 0);
  }

  private async _readTail(): Promise<void> {
    const page = await this._client.log(
      this._job,
      this.target,
      -TAIL_BYTES,
      TAIL_BYTES
    );
    if (this._isDisposed) {
      return;
    }
    const text = this._decoder.decode(page.bytes, { stream: true });
    const cut = page.offset > 0;
    this._offset = page.next;
    this._update({ text: cut ? fromFullLine(text) : text, cut });
  }

  private _append(bytes: ArrayBuffer): void {
    this._offset = (this._offset ?? 0) + bytes.byteLength;
    const text =
      this._state.text + this._decoder.decode(bytes, { stream: true });
    if (text.length <= KEEP) {
      this._update({ text });
      return;
    }
    // Half goes at once, so that trimming is rare and following stays cheap.
    this._update({
      text: fromFullLine(text.slice(-KEEP / 2)),
      cut: true,
      generation: this._state.generation + 1
    });
  }

  private _update(change: Partial<ILogState>): void {
    this._state = { ...this._state, ...change };
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _client: IPaiClient;
  private readonly _decoder = new TextDecoder();
  private _isDisposed = false;
  private readonly _job: string;
  private _offset: number | null = null;
  private _state: ILogState = {
    text: '',
    generation: 0,
    cut: false,
    live: false,
    complete: false
  };
  private _stream: ResumedStream | null = null;
}
