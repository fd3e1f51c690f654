/**
 * Files on their way to the backend's storage, one after the other, each in parts.
 *
 * The Jupyter server holds a request's body in its memory before it passes it on, so a file goes in many small ones.
 */

import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import { asPaiError, AwayCode, PaiError } from '../problem';
import type { IPaiClient } from '../tokens';
import { within } from './paths';

/** Bytes of a part: what the Jupyter server holds at most, and what is sent again after a broken connection. */
export const PART_BYTES = 4 * 1024 * 1024;

/** How far an upload is. */
export type Stage = 'waiting' | 'sending' | 'done' | 'failed' | 'cancelled';

/** An upload and what is known of it. */
export interface IUpload {
  readonly id: number;
  readonly path: string;
  readonly name: string;
  readonly size: number;
  /** Bytes that the backend has. */
  readonly sent: number;
  readonly stage: Stage;
  /** Why it failed. */
  readonly problem: PaiError | null;
}

/** A file to upload. */
export interface IToUpload {
  readonly file: File;
  /** Whether a file of its name is replaced. */
  readonly replace: boolean;
}

interface ITask extends IToUpload {
  upload: IUpload;
  aborter: AbortController;
}

/** Whether an upload has not ended. */
export function isUnderWay({ stage }: IUpload): boolean {
  return stage === 'waiting' || stage === 'sending';
}

/** Whether the browser still reads a file: not when it has changed since it was chosen. */
async function isReadable(file: File): Promise<boolean> {
  try {
    await file.slice(0, 1).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

/** The queue of uploads. */
export class Uploads implements IDisposable {
  constructor(private readonly _client: IPaiClient) {}

  /** All that were added and not cleared, in the order of their adding. */
  get all(): readonly IUpload[] {
    return [...this._tasks.values()].map(({ upload }) => upload);
  }

  /** Emitted when any of them has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted when the last of them has ended. */
  get rested(): ISignal<this, void> {
    return this._rested;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Upload files to a folder, after those that wait already. */
  add(folder: string, files: readonly IToUpload[]): void {
    for (const { file, replace } of files) {
      const id = ++this._last;
      const upload: IUpload = {
        id,
        path: within(folder, file.name),
        name: file.name,
        size: file.size,
        sent: 0,
        stage: 'waiting',
        problem: null
      };
      const aborter = new AbortController();
      this._tasks.set(id, { file, replace, upload, aborter });
    }
    this._emit();
    void this._run();
  }

  /** End an upload that has not ended; the backend forgets what came of it. */
  cancel(id: number): void {
    const task = this._tasks.get(id);
    if (task && isUnderWay(task.upload)) {
      const wasSending = task.upload.stage === 'sending';
      this._change(task, { stage: 'cancelled' });
      task.aborter.abort();
      if (wasSending) {
        void this._forget(task);
      }
    }
  }

  /** Go on with an upload that failed, from what the backend has of it. */
  retry(id: number): void {
    const task = this._tasks.get(id);
    if (task?.upload.stage === 'failed') {
      task.aborter = new AbortController();
      this._change(task, { stage: 'waiting', problem: null });
      void this._run();
    }
  }

  /** Drop those that have ended from the list. */
  clear(): void {
    for (const [id, { upload }] of this._tasks) {
      if (!isUnderWay(upload)) {
        this._tasks.delete(id);
      }
    }
    this._emit();
  }

  dispose(): void {
    this._isDisposed = true;
    for (const { aborter } of this._tasks.values()) {
      aborter.abort();
    }
    Signal.clearData(this);
  }

  private async _run(): Promise<void> {
    if (this._isRunning) {
      return;
    }
    this._isRunning = true;
    for (let task = this._next(); task; task = this._next()) {
      await this._send(task);
    }
    this._isRunning = false;
    if (!this._isDisposed) {
      this._rested.emit();
    }
  }

  private _next(): ITask | undefined {
    const tasks = this._isDisposed ? [] : [...this._tasks.values()];
    return tasks.find(({ upload }) => upload.stage === 'waiting');
  }

  /** Send one whole file. Never rejects. */
  private async _send(task: ITask): Promise<void> {
    this._change(task, { stage: 'sending' });
    try {
      await this._sendParts(task);
    } catch (reason) {
      const problem = (await isReadable(task.file))
        ? asPaiError(reason)
        : new PaiError(0, { code: AwayCode.file });
      this._change(task, { stage: 'failed', problem });
      return;
    }
    this._change(task, { stage: 'done' });
  }

  private async _sendParts(task: ITask): Promise<void> {
    const { file, replace, aborter } = task;
    const { path, size } = task.upload;
    const { signal } = aborter;
    let isComplete = false;
    let hasRestarted = false;
    while (!isComplete && !signal.aborted) {
      const offset = task.upload.sent;
      const bytes = file.slice(offset, offset + PART_BYTES);
      const part = { bytes, offset, size, replace, signal };
      const state = await this._client.sendPart(path, part).catch(reason => {
        // The backend has less than it had: it forgot the upload, or another process answers.
        const isLost = offset > 0 && asPaiError(reason).status === 409;
        if (!isLost || hasRestarted) {
          throw reason;
        }
        hasRestarted = true;
        return null;
      });
      isComplete = state?.complete ?? false;
      this._change(task, { sent: state ? offset + bytes.size : 0 });
    }
  }

  /** Have the backend drop what it has. An older file of the name stays. Never rejects. */
  private async _forget(task: ITask): Promise<void> {
    const { path, size } = task.upload;
    try {
      const bytes = task.file.slice(0, 0);
      const part = { bytes, offset: 0, size, replace: true };
      await (size > 0 && this._client.sendPart(path, part));
    } catch {
      // It is dropped when it gets old.
    }
  }

  private _change(task: ITask, change: Partial<IUpload>): void {
    // What was cancelled stays so, whatever its last request comes to.
    if (task.upload.stage !== 'cancelled') {
      task.upload = { ...task.upload, ...change };
      this._emit();
    }
  }

  private _emit(): void {
    if (!this._isDisposed) {
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _isDisposed = false;
  private _isRunning = false;
  private _last = 0;
  private readonly _rested = new Signal<this, void>(this);
  private readonly _tasks = new Map<number, ITask>();
}
