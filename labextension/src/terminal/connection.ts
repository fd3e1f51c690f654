/**
 * The connection of a terminal to the shell in a task.
 *
 * JupyterLab's own gives up after seven tries and tells no size when it is back. This one goes on until the shell has
 * ended, and what the server says beside output it says in the user's language.
 */

import type { ServerConnection, Terminal } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import { PaiError } from '../problem';
import { problemWords } from '../words';

/** Pauses between tries; the last one is repeated. */
const PAUSES_MS = [500, 1_000, 2_000, 5_000, 10_000];
/** So much is typed ahead at most, before the shell is there. */
const MOST_EARLY = 200;

/** What a connection is made of. */
export interface ITerminalOptions {
  /** What the tab is called. */
  readonly name: string;
  readonly serverSettings: ServerConnection.ISettings;
  readonly trans: TranslationBundle;
  /** Whether there may be no such shell yet. */
  readonly start: boolean;
  /** Open the WebSocket. */
  readonly open: (start: boolean) => WebSocket;
  /** End the shell. */
  readonly end: () => Promise<void>;
}

/** What the server says beside output. */
interface INotice {
  readonly code?: number | string | null;
  readonly signal?: number | null;
  readonly reason?: string;
  readonly message?: string;
  readonly hint?: string;
}

/** A remark between brackets, on a line of its own and paler than output. */
function remark(text: string): string {
  return `\r\n\x1b[2m[${text}]\x1b[22m\r\n`;
}

/** The remark for a notice of the server. */
export function noticeText(
  trans: TranslationBundle,
  kind: string,
  notice: INotice
): string {
  if (kind === 'lost') {
    return trans.__('The connection to the task is lost. Reconnecting…');
  }
  if (kind === 'refused') {
    if (notice.code === 'NoTerminalError') {
      return trans.__('This shell has ended. Open a new terminal.');
    }
    const { code, ...told } = notice;
    const words = { ...told, code: String(code) };
    const { what, remedy } = problemWords(trans, new PaiError(400, words));
    return [what, remedy].filter(Boolean).join(' ');
  }
  if (typeof notice.signal === 'number') {
    return trans.__('The shell was ended by signal %1.', notice.signal);
  }
  return typeof notice.code === 'number'
    ? trans.__('The shell has ended with exit code %1.', notice.code)
    : trans.__('The shell has ended: %1', notice.reason ?? '');
}

/** One window's connection to a shell. */
export class TerminalConnection implements Terminal.ITerminalConnection {
  constructor(options: ITerminalOptions) {
    this._options = options;
    this._start = options.start;
    window.addEventListener('online', this._hurry);
    this._connect();
  }

  get name(): string {
    return this._options.name;
  }

  get model(): Terminal.IModel {
    return { name: this.name };
  }

  get serverSettings(): ServerConnection.ISettings {
    return this._options.serverSettings;
  }

  get messageReceived(): ISignal<this, Terminal.IMessage> {
    return this._messageReceived;
  }

  get connectionStatus(): Terminal.ConnectionStatus {
    return this._status;
  }

  get connectionStatusChanged(): ISignal<this, Terminal.ConnectionStatus> {
    return this._statusChanged;
  }

  get disposed(): ISignal<this, void> {
    return this._disposed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether the shell has ended, or cannot be reached for good. */
  get hasEnded(): boolean {
    return this._hasEnded;
  }

  /** Send a message. What is typed while a connection is lost goes nowhere: the user does not see where. */
  send(message: Terminal.IMessage): void {
    if (message.type === 'set_size') {
      this._size = message;
    }
    if (this._status === 'connected') {
      this._write(message);
    } else if (
      message.type === 'stdin' &&
      !this._wasConnected &&
      this._early.length < MOST_EARLY
    ) {
      this._early.push(message);
    }
  }

  /** Connect again at once. */
  async reconnect(): Promise<void> {
    this._connect();
    await Promise.resolve();
  }

  /** End the shell. */
  async shutdown(): Promise<void> {
    await this._options.end();
  }

  /** Close the window's connection; the shell goes on. */
  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    window.removeEventListener('online', this._hurry);
    this._close();
    this._setStatus('disconnected');
    this._disposed.emit();
    Signal.clearData(this);
  }

  private _connect(): void {
    this._close();
    if (this._isDisposed || this._hasEnded) {
      return;
    }
    this._setStatus('connecting');
    const socket = (this._socket = this._options.open(this._start));
    socket.onmessage = event =>
      this._take(JSON.parse(String(event.data)) as [string, ...unknown[]]);
    socket.onclose = () => this._lost();
  }

  private _close(): void {
    window.clearTimeout(this._timer);
    if (this._socket) {
      this._socket.onmessage = this._socket.onclose = null;
      this._socket.close();
      this._socket = null;
    }
  }

  private _lost(): void {
    if (this._status === 'connected') {
      this._show(
        this._options.trans.__(
          'The connection to Jupyter is lost. Reconnecting…'
        )
      );
    }
    this._close();
    this._setStatus('connecting');
    const pause = PAUSES_MS[Math.min(this._tries, PAUSES_MS.length - 1)];
    this._tries += 1;
    this._timer = window.setTimeout(() => this._connect(), pause);
  }

  private readonly _hurry = (): void => {
    if (this._status === 'connecting') {
      this._connect();
    }
  };

  private _take(message: [string, ...unknown[]]): void {
    const [type, first, second] = message;
    if (type === 'setup') {
      this._tries = 0;
      this._setStatus('connected');
      for (const each of [this._size, ...this._early]) {
        if (each) {
          this._write(each);
        }
      }
      this._wasConnected = true;
      this._early = [];
    } else if (type === 'stdout') {
      this._start = false;
      this._messageReceived.emit({ type, content: [String(first)] });
    } else if (type === 'pai') {
      this._show(
        noticeText(this._options.trans, String(first), second as INotice)
      );
    } else if (type === 'disconnect') {
      this._hasEnded = true;
      this._close();
      this._setStatus('disconnected');
    }
  }

  private _show(text: string): void {
    this._messageReceived.emit({ type: 'stdout', content: [remark(text)] });
  }

  private _write(message: Terminal.IMessage): void {
    this._socket?.send(
      JSON.stringify([message.type, ...(message.content ?? [])])
    );
  }

  private _setStatus(status: Terminal.ConnectionStatus): void {
    if (status !== this._status) {
      this._status = status;
      this._statusChanged.emit(status);
    }
  }

  private readonly _disposed = new Signal<this, void>(this);
  private _early: Terminal.IMessage[] = [];
  private _hasEnded = false;
  private _isDisposed = false;
  private readonly _messageReceived = new Signal<this, Terminal.IMessage>(this);
  private readonly _options: ITerminalOptions;
  private _size: Terminal.IMessage | null = null;
  private _socket: WebSocket | null = null;
  private _start: boolean;
  private _status: Terminal.ConnectionStatus = 'connecting';
  private readonly _statusChanged = new Signal<this, Terminal.ConnectionStatus>(
    this
  );
  private _timer = 0;
  private _tries = 0;
  private _wasConnected = false;
}
