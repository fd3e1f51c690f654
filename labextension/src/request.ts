/**
 * The only file that talks to the network: requests and sockets below `<baseUrl>pai/`.
 */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { AwayCode, errorOf, PaiError } from './problem';
import { HEARTBEAT } from './stream';

/** Asks the backend for the shapes of `types.ts`; without it, it answers in OpenPAI's. */
const OUR_SHAPES = 'application/vnd.jupyter-pai+json';

/** Where the backend's API is, below the Jupyter server. */
const API = 'pai/api/v2';
/** Where what the Jupyter server does itself is. */
const SERVER = 'pai';

/** How long an own address of a service may take to answer before it counts as out of reach. */
const REACH_MS = 5_000;
/** How much of a page is read to see which addresses it uses. */
const PAGE_BYTES = 65_536;

/** Names and values of a query; undefined and empty ones are left out. */
export type Query = Readonly<
  Record<string, string | number | boolean | undefined>
>;

/** A path with a query behind it. */
export function withQuery(path: string, query: Query): string {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([key, value]) => [key, String(value)]);
  const text = new URLSearchParams(pairs).toString();
  return text ? `${path}?${text}` : path;
}

/** The path of these parts, each of which may hold anything. */
export function pathOf(...parts: readonly (string | number)[]): string {
  return parts.map(encodeURIComponent).join('/');
}

/** A request that reads is given up after so long, in milliseconds: it is asked again anyway. */
const PATIENCE_MS = 30_000;
/** A request without an answer for so long is told, in milliseconds. */
const LATE_MS = 4_000;

/** What `work` gives; `onLate` is called meanwhile when that takes long. */
export async function orLate<T>(
  work: Promise<T>,
  onLate: (problem: PaiError) => void
): Promise<T> {
  const late = new PaiError(0, { code: AwayCode.silent });
  const timer = setTimeout(() => onLate(late), LATE_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

/** The beginning of a body as text; the rest is not read. */
async function beginningOf(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (reader && text.length < PAGE_BYTES) {
    const { done, value } = await reader.read();
    if (done) {
      return text;
    }
    text += decoder.decode(value, { stream: true });
  }
  await reader?.cancel();
  return text;
}

/** A body as text, with its byte order mark where it has one: `text()` drops that. */
export async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  return decoder.decode(await response.arrayBuffer());
}

/** What `work` resolves to if it does so in time, else `otherwise`. */
async function inTime<T>(
  work: (signal: AbortSignal) => Promise<T>,
  otherwise: T
): Promise<T> {
  const aborter = new AbortController();
  const timer = setTimeout(() => aborter.abort(), REACH_MS);
  try {
    return await work(aborter.signal);
  } catch {
    // Nothing answers there, in time or for this page: that is the answer.
    return otherwise;
  } finally {
    clearTimeout(timer);
  }
}

/** A request beside its method and path. */
export interface IRequestOptions {
  readonly body?: string | Blob;
  readonly headers?: Readonly<Record<string, string>>;
  /** Gives the request up; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Requests and sockets over the Jupyter server's connection settings. Requests reject with {@link PaiError}. */
export class Connection {
  constructor(readonly settings: ServerConnection.ISettings) {}

  /** A request to the backend whose answer is JSON of the contract's type. */
  async json<T>(method: string, path: string, body?: string): Promise<T> {
    return (await (await this.api(method, path, { body })).json()) as T;
  }

  /** The rows of a list of the backend. */
  async rows<T>(path: string): Promise<readonly T[]> {
    return (await this.json<{ readonly data: readonly T[] }>('GET', path)).data;
  }

  /** A request to the backend. */
  async api(
    method: string,
    path: string,
    options: IRequestOptions = {}
  ): Promise<Response> {
    return this._request(method, URLExt.join(API, path), options);
  }

  /** A request for what the Jupyter server does or finds out itself; its answer is JSON. */
  async server<T>(method: string, path: string, value?: object): Promise<T> {
    const body = value && JSON.stringify(value);
    const url = URLExt.join(SERVER, path);
    const answer = await this._request(method, url, { body });
    return (answer.status === 204 ? undefined : await answer.json()) as T;
  }

  /** The address of something of the backend, for a link. */
  address(path: string, query: Query): string {
    const { baseUrl } = this.settings;
    return URLExt.join(baseUrl, API, this._signed(path, query));
  }

  /** A stream of the backend, with a sign of life. */
  stream(path: string, query: Query = {}): WebSocket {
    const alive = { ...query, heartbeat: HEARTBEAT };
    return this._socket(URLExt.join(API, path), alive);
  }

  /** A socket of the Jupyter server itself. */
  socket(path: string, query: Query): WebSocket {
    return this._socket(URLExt.join(SERVER, path), query);
  }

  /** Whether a public address answers, in time and to this page, with this text. */
  async reads(address: string, text: string): Promise<boolean> {
    return inTime(async signal => {
      const { fetch } = this.settings; // the browser's, which is no method of the settings
      const answer = await fetch(
        new Request(address, { credentials: 'omit', signal })
      );
      return answer.ok && (await beginningOf(answer)) === text;
    }, false);
  }

  /** The beginning of a page below the Jupyter server; null when none answers in time. */
  async page(address: string): Promise<string | null> {
    return inTime<string | null>(async signal => {
      const answer = await ServerConnection.makeRequest(
        address,
        { headers: { Accept: 'text/html' }, signal },
        this.settings
      );
      const type = answer.headers.get('Content-Type') ?? '';
      const isPage = answer.ok && type.startsWith('text/html');
      return isPage ? await beginningOf(answer) : null;
    }, null);
  }

  private async _request(
    method: string,
    path: string,
    { body, headers, signal }: IRequestOptions
  ): Promise<Response> {
    const url = URLExt.join(this.settings.baseUrl, path);
    let response: Response;
    const aborter = new AbortController();
    const give = () => aborter.abort();
    signal?.addEventListener('abort', give);
    const timer = method === 'GET' ? setTimeout(give, PATIENCE_MS) : undefined;
    try {
      response = await ServerConnection.makeRequest(
        url,
        // Never from the browser's cache; "no-store" would do too, but JupyterLab then adds a bare
        // number to the query, which a strict server refuses.
        {
          method,
          body,
          cache: 'reload',
          signal: aborter.signal,
          headers: { Accept: OUR_SHAPES, ...headers }
        },
        this.settings
      );
    } catch (reason) {
      signal?.throwIfAborted();
      if (aborter.signal.aborted) {
        throw new PaiError(0, { code: AwayCode.silent });
      }
      if (reason instanceof ServerConnection.NetworkError) {
        throw new PaiError(0, { code: AwayCode.jupyter });
      }
      throw reason;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', give);
    }
    if (!response.ok) {
      throw await errorOf(response);
    }
    return response;
  }

  private _socket(path: string, query: Query): WebSocket {
    const { wsUrl, WebSocket } = this.settings;
    return new WebSocket(URLExt.join(wsUrl, this._signed(path, query)));
  }

  private _signed(path: string, query: Query): string {
    const { appendToken, token } = this.settings;
    const signed = { ...query, token: appendToken ? token : undefined };
    return withQuery(path, signed);
  }
}
