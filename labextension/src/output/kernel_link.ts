/**
 * A form in a notebook and the form of Python that it draws, kept in step by a comm.
 */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

/** The comm's target. Source: jupyter_pai/widgets/form.py. */
const TARGET = 'jupyter-pai.form';

/** A document as both sides tell it. */
export interface ITold {
  readonly text: string;
  readonly filename: string;
}

/** What goes to Python. */
type Message = ITold | { readonly submitted: string };

/** The link of one form. Without a kernel, and with one that does not know the form, it is not connected. */
export class KernelLink implements IDisposable {
  constructor(
    private readonly _session: ISessionContext,
    private readonly _form: string,
    private readonly _take: (told: ITold) => void
  ) {
    _session.kernelChanged.connect(this._open, this);
    // A kernel that restarts ends its comms without a word.
    _session.statusChanged.connect(this._look, this);
    this._open();
  }

  /** Whether Python has what was told last. */
  get isConnected(): boolean {
    return this._isConnected;
  }

  /** Emitted when {@link isConnected} has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Tell Python; while it is busy with an earlier message, only the last document waits. */
  tell(message: Message): void {
    if ('text' in message && this._isTelling) {
      this._next = message;
      return;
    }
    if (!this._comm || this._comm.isDisposed) {
      return;
    }
    this._isTelling = true;
    const { done } = this._comm.send({ ...message });
    const go = () => {
      this._isTelling = false;
      const next = this._next;
      this._next = null;
      if (next) {
        this.tell(next);
      }
    };
    // A message that a kernel did not live to answer: what comes next finds out that it is gone.
    done.then(go, go);
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._session.kernelChanged.disconnect(this._open, this);
    this._session.statusChanged.disconnect(this._look, this);
    if (this._comm && !this._comm.isDisposed) {
      this._comm.close();
    }
    Signal.clearData(this);
  }

  private _open(): void {
    this._set(false);
    const kernel = this._session.session?.kernel;
    if (!kernel) {
      return;
    }
    const comm = (this._comm = kernel.createComm(TARGET));
    comm.onMsg = (message: KernelMessage.ICommMsgMsg) => {
      this._set(true);
      this._take(message.content.data as unknown as ITold);
    };
    comm.onClose = () => this._set(false);
    comm.open({ form: this._form });
  }

  private _look(): void {
    if (this._comm?.isDisposed) {
      this._set(false);
    }
  }

  private _set(isConnected: boolean): void {
    if (isConnected !== this._isConnected && !this._isDisposed) {
      this._isConnected = isConnected;
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _comm: Kernel.IComm | null = null;
  private _isConnected = false;
  private _isDisposed = false;
  private _isTelling = false;
  private _next: ITold | null = null;
}
