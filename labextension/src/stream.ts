/**
 * A pushed stream that is opened again, from where it stopped, when it breaks.
 */

import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';

/** Delays between tries, in milliseconds: a restart of the server is short, an absence may be long. */
const FREQUENCY = { interval: 1000, backoff: true, max: 30 * 1000 };

/** Seconds of silence after which the backend sends an empty message. */
export const HEARTBEAT = 2;

/** A stream that is silent for longer is not known to be alive, in milliseconds. */
const DOUBT = 4 * 1000;

/** One that is silent for longer is broken, in milliseconds: a page learns nothing of a half-open connection. */
const SILENCE = 8 * 1000;

/** How often silence is looked for, in milliseconds. */
const LOOK = 500;

/** How long a connection may take to open, in milliseconds. */
const OPENING = 20 * 1000;

/** How the backend closes a stream that is complete. 1000 alone is also said by a server whose ping timed out. */
function isComplete(event: CloseEvent): boolean {
  return event.code === 1000 && event.reason === 'complete';
}

/** A WebSocket kept open until it is complete or disposed. */
export class ResumedStream implements IDisposable {
  constructor(options: ResumedStream.IOptions) {
    this._options = options;
    this._poll = new Poll({
      auto: true,
      factory: () => this._follow(),
      frequency: FREQUENCY,
      name: 'jupyter-pai:stream',
      standby: 'never'
    });
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Close the socket; nothing is received afterwards. */
  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._poll.dispose();
    this._socket?.close();
    this._socket = null;
  }

  /** One connection from open to close; rejects when it never opened, so that the next try waits longer. */
  private async _follow(): Promise<void> {
    const socket = await this._options.open();
    if (this._isDisposed) {
      socket.close();
      return;
    }
    this._socket = socket;
    socket.binaryType = 'arraybuffer';
    await new Promise<void>((resolve, reject) => {
      let opened = false;
      let heard = Date.now();
      const closed = (event: CloseEvent | null) => {
        window.clearInterval(watch);
        socket.onopen = socket.onmessage = socket.onclose = null;
        this._closed(event);
        if (opened) {
          resolve();
        } else {
          reject(new Error(`stream refused (${event?.code ?? 'no answer'})`));
        }
      };
      const watch = window.setInterval(() => {
        const silence = Date.now() - heard;
        if (silence > (opened ? SILENCE : OPENING)) {
          closed(null); // its own event comes only when the other end answers
          socket.close();
        } else if (silence > DOUBT) {
          this._connected(false);
        }
      }, LOOK);
      socket.onopen = () => {
        opened = true;
        heard = Date.now();
        this._connected(true);
      };
      socket.onmessage = (message: MessageEvent) => {
        heard = Date.now();
        this._connected(true);
        if (!this._isDisposed && message.data !== '') {
          this._options.receive(message.data);
        }
      };
      socket.onclose = closed;
    });
  }

  private _closed(event: CloseEvent | null): void {
    this._socket = null;
    if (this._isDisposed) {
      return;
    }
    this._connected(false);
    if (event && isComplete(event) && this._options.completed) {
      this.dispose();
      this._options.completed();
    }
  }

  private _connected(connected: boolean): void {
    if (!this._isDisposed && connected !== this._isConnected) {
      this._isConnected = connected;
      this._options.connected?.(connected);
    }
  }

  private _isConnected = false;
  private _isDisposed = false;
  private readonly _options: ResumedStream.IOptions;
  private readonly _poll: Poll;
  private _socket: WebSocket | null = null;
}

/** Options of {@link ResumedStream}. */
export namespace ResumedStream {
  /** What a stream needs from its owner, who keeps the position. */
  export interface IOptions {
    /** Open a socket at the owner's position. Called again after each break. */
    readonly open: () => WebSocket | Promise<WebSocket>;
    /** Called with the data of each message, in order. */
    readonly receive: (data: unknown) => void;
    /** Called when the connection comes and goes. */
    readonly connected?: (connected: boolean) => void;
    /**
     * Called once when the server says that nothing more will come; the stream is disposed then.
     * Without it the stream has no end, and every close is a break.
     */
    readonly completed?: () => void;
  }
}
