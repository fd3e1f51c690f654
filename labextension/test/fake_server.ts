/**
 * A Jupyter server with our half, as the browser's `fetch` and `WebSocket` see it.
 *
 * Answers are given by the test, so that it decides in which order they arrive.
 */

import { ServerConnection } from '@jupyterlab/services';
import { clientOver } from '../src/client/client';
import type { IPaiClient } from '../src/tokens';

/** A request as it reached the server. */
export interface IRequest {
  readonly method: string;
  /** Path and query below `/pai/api/v2/`, or `/pai/` for what is not the API's; decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: string;
  readonly headers: Headers;
}

type Answer = Response | Promise<Response>;
type Handler = (request: IRequest) => Answer;

/** A JSON answer. */
export function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status });
}

/** An answer that comes when the test says so. */
export class Held {
  readonly answer: Promise<Response>;
  release!: (response: Response) => void;

  constructor() {
    this.answer = new Promise(resolve => {
      this.release = resolve;
    });
  }
}

/** The server's end of a WebSocket, and the browser's object for it. */
export class FakeSocket {
  constructor(readonly url: string) {
    FakeSocket.opened.push(this);
  }

  static opened: FakeSocket[] = [];

  onopen: (() => void) | null = null;
  onmessage: ((message: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  binaryType = 'blob';
  closed = false;

  close(): void {
    this.end(1000);
  }

  /** The server accepts. */
  accept(): void {
    this.onopen?.();
  }

  /** The server sends. */
  send(data: unknown): void {
    this.onmessage?.({ data });
  }

  /** The connection ends. */
  end(code: number, reason = ''): void {
    if (!this.closed) {
      this.closed = true;
      this.onclose?.({ code, reason });
    }
  }
}

/** Routes requests to the test's handlers and records them. */
export class FakeServer {
  constructor() {
    FakeSocket.opened = [];
    const answer = (input: RequestInfo) => this._answer(input as Request);
    this.settings = ServerConnection.makeSettings({
      baseUrl: 'http://127.0.0.1:8888/base/',
      wsUrl: 'ws://127.0.0.1:8888/base/',
      token: 'secret',
      appendToken: true,
      // As a method of another object the browser's own refuses, too.
      fetch: async function (this: unknown, input: RequestInfo) {
        if (this) {
          throw new TypeError('Illegal invocation');
        }
        return answer(input);
      },
      WebSocket: FakeSocket as unknown as typeof WebSocket
    });
    this.client = clientOver(this.settings);
  }

  readonly settings: ServerConnection.ISettings;
  readonly client: IPaiClient;
  readonly requests: IRequest[] = [];

  /** Answer requests such as `GET jobs` by `handler`; the last one given counts. */
  on(route: string, handler: Handler): void {
    this._handlers.set(route, handler);
  }

  /** How requests of a route are answered now. */
  answerOf(route: string): Handler {
    return this._handlers.get(route)!;
  }

  /** The sockets opened so far whose path begins with `path`. */
  sockets(path: string): FakeSocket[] {
    const start = `ws://127.0.0.1:8888/base/pai/api/v2/${path}`;
    return FakeSocket.opened.filter(socket => socket.url.startsWith(start));
  }

  private async _answer(input: Request): Promise<Response> {
    const url = new URL(input.url);
    const path = decodeURIComponent(
      url.pathname.replace(/^\/base\/pai\/(api\/v2\/)?/, '')
    );
    const request = {
      method: input.method,
      path,
      query: url.searchParams,
      body: await input.text(),
      headers: input.headers
    };
    this.requests.push(request);
    const handler = this._handlers.get(`${input.method} ${path}`);
    if (!handler) {
      throw new TypeError(`no answer for ${input.method} ${path}`);
    }
    return handler(request);
  }

  private readonly _handlers = new Map<string, Handler>();
}
