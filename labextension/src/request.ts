/**
 * The only file that talks to the network: the wire contract below `<baseUrl>pai/`.
 */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { HEARTBEAT } from './stream';
import type { Way } from './address';
import { wayTo } from './address';
import type { FormDialect, IFormSchema } from './form/schema';
import type {
  IDocumentText,
  IJobBundle,
  IJobKernel,
  IJobQuery,
  ILogPage,
  ILogTarget,
  IPaiClient,
  IShares,
  ITerminalPlace,
  ITerminalSession,
  ISubmissionTerms,
  QueuePlace
} from './tokens';
import type {
  IClusterUse,
  IDoctorReport,
  IErrorBody,
  IFault,
  IGuide,
  IJobDetail,
  IJobPage,
  IMoved,
  IOrphan,
  IOrphanList,
  IReleased,
  IShareList,
  ITicket,
  ITrial,
  IVerdict,
  IWhy
} from './types';

/** Asks the backend for the shapes of `types.ts`; without it, it answers in OpenPAI's. */
const OUR_SHAPES = 'application/vnd.jupyter-pai+json';

/** Where the backend's API is, below the Jupyter server. */
const API = 'pai/api/v2';

/** Codes of failures that no backend reports, because none was reached. */
export namespace AwayCode {
  /** The Jupyter server does not answer. */
  export const jupyter = 'JupyterAway';
  /** The Jupyter server answers and does not know us. */
  export const extension = 'ServerExtensionMissing';
  /** The Jupyter server knows us and cannot reach the backend. */
  export const backend = 'UnavailableError';
}

/** A failed request: the wire's error, or one of {@link AwayCode}. */
export class PaiError extends Error {
  constructor(status: number, body: Partial<IErrorBody>) {
    super(body.message ?? '');
    this.name = 'PaiError';
    this.status = status;
    this.code = body.code ?? 'UnknownError';
    this.hint = body.hint ?? '';
    this.faults = body.errors ?? [];
  }

  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** Stable machine word. */
  readonly code: string;
  /** The remedy, in a sentence; may be empty. */
  readonly hint: string;
  /** The places it is about. */
  readonly faults: readonly IFault[];
}

/** What was thrown, as the error type of this package. */
export function asPaiError(reason: unknown): PaiError {
  if (reason instanceof PaiError) {
    return reason;
  }
  const message = reason instanceof Error ? reason.message : String(reason);
  return new PaiError(0, { code: 'UnknownError', message });
}

function isErrorBody(value: unknown): value is IErrorBody {
  return (
    typeof value === 'object' &&
    value !== null &&
    'code' in value &&
    typeof value.code === 'string'
  );
}

/** The error of a response that is not a success. */
async function errorOf(response: Response): Promise<PaiError> {
  const text = await response.text();
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    // Not ours: a proxy's page or Jupyter's own. The status decides below.
  }
  if (isErrorBody(body)) {
    return new PaiError(response.status, body);
  }
  if (response.status === 404) {
    return new PaiError(404, { code: AwayCode.extension });
  }
  if ([502, 503, 504].includes(response.status)) {
    return new PaiError(response.status, { code: AwayCode.backend });
  }
  return new PaiError(response.status, {
    message: `${response.status} ${response.statusText}`
  });
}

/** Marks a job that was made for a kernel and ends with it. The server extension knows it. */
export const KERNEL_TAG = 'made-for-kernel';

/** The path of a terminal, or of all in a task. */
function terminalPath(place: Partial<ITerminalPlace>): string {
  const { job, role, index, name } = place;
  const parts = [job, role, index, name].filter(part => part !== undefined);
  return ['terminals', ...parts].map(encodeURIComponent).join('/');
}

/** How long an own address of a service may take to answer before it counts as out of reach. */
const REACH_MS = 5_000;
/** How much of a page is read to see which addresses it uses. */
const PAGE_BYTES = 65_536;

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

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

function withQuery(path: string, query: Query): string {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([key, value]) => [key, String(value)]);
  const text = new URLSearchParams(pairs).toString();
  return text ? `${path}?${text}` : path;
}

/** {@link IPaiClient} over the Jupyter server's connection settings. */
export class PaiClient implements IPaiClient {
  constructor(settings: ServerConnection.ISettings) {
    this._settings = settings;
  }

  async jobs(query: IJobQuery): Promise<IJobPage> {
    const path = withQuery('jobs', {
      keyword: query.keyword,
      state: query.states?.join(','),
      limit: query.limit,
      order: 'submissionTime,DESC',
      withTotalCount: true
    });
    return this._json('GET', path);
  }

  async job(job: string): Promise<IJobDetail> {
    return this._json('GET', this._jobPath(job));
  }

  async why(job: string): Promise<IWhy> {
    return this._json('GET', `${this._jobPath(job)}/why`);
  }

  async submit(
    document: IDocumentText,
    terms: ISubmissionTerms = {}
  ): Promise<IJobDetail> {
    const { text, filename } = document;
    const { name, replace, key } = terms;
    const path = withQuery('jobs', {
      name,
      filename,
      replace: replace ? 'true' : undefined
    });
    const headers: Record<string, string> = key
      ? { 'Idempotency-Key': key }
      : {};
    const answer = await this._request('POST', path, text, API, headers);
    return answer.json() as Promise<IJobDetail>;
  }

  async validate(document: IDocumentText): Promise<IVerdict> {
    const path = withQuery('validate', { filename: document.filename });
    return this._json('POST', path, document.text);
  }

  async trial(document: IDocumentText): Promise<ITrial> {
    const path = withQuery('trial', { filename: document.filename });
    return this._json('POST', path, document.text);
  }

  async schema(dialect: FormDialect): Promise<IFormSchema> {
    return this._json('GET', withQuery('schema/job', { dialect }));
  }

  async stop(job: string): Promise<void> {
    const path = `${this._jobPath(job)}/executionType`;
    await this._request('PUT', path, JSON.stringify({ value: 'STOP' }));
  }

  async start(job: string): Promise<void> {
    const path = `${this._jobPath(job)}/executionType`;
    await this._request('PUT', path, JSON.stringify({ value: 'START' }));
  }

  async delete(job: string): Promise<void> {
    await this._request('DELETE', this._jobPath(job));
  }

  async release(job: string, task?: string): Promise<IReleased> {
    return this._json(
      'POST',
      withQuery(`${this._jobPath(job)}/release`, { task })
    );
  }

  async move(job: string, place: QueuePlace): Promise<IMoved> {
    const path = `${this._jobPath(job)}/move`;
    return this._json('POST', path, JSON.stringify(place));
  }

  async use(): Promise<IClusterUse> {
    return this._json('GET', 'cluster/use');
  }

  async orphans(): Promise<readonly IOrphan[]> {
    return (await this._json<IOrphanList>('GET', 'cluster/orphans')).data;
  }

  async endOrphan(task: string): Promise<void> {
    const path = `cluster/orphans/${encodeURIComponent(task)}`;
    await this._request('DELETE', path);
  }

  async ticket(
    job: string,
    label: string,
    role: string,
    index: number
  ): Promise<ITicket> {
    const service = `${this._jobPath(job)}/services/${encodeURIComponent(label)}`;
    const path = withQuery(`${service}/ticket`, { role, index });
    return this._json('POST', path);
  }

  async shares(): Promise<IShares> {
    const [received, given] = await Promise.all([
      this._json<IShareList>('GET', 'shares'),
      this._json<IShareList>('GET', withQuery('shares', { given: true }))
    ]);
    return { received: received.data, given: given.data };
  }

  async guide(job: string): Promise<IGuide> {
    return this._reach('connect', job);
  }

  async doctor(job: string): Promise<IDoctorReport> {
    return this._reach('doctor', job);
  }

  async kernels(): Promise<readonly IJobKernel[]> {
    const answer = await this._request('GET', 'kernels', undefined, 'pai');
    const found = (await answer.json()) as { kernels: IJobKernel[] };
    return found.kernels;
  }

  async markForKernel(job: string): Promise<void> {
    const path = `${this._jobPath(job)}/tag`;
    await this._request('PUT', path, JSON.stringify({ value: KERNEL_TAG }));
  }

  async terminals(
    task: Omit<ITerminalPlace, 'name'>
  ): Promise<readonly ITerminalSession[]> {
    const answer = await this._request(
      'GET',
      terminalPath(task),
      undefined,
      'pai'
    );
    return ((await answer.json()) as { terminals: ITerminalSession[] })
      .terminals;
  }

  async endTerminal(place: ITerminalPlace): Promise<void> {
    await this._request('DELETE', terminalPath(place), undefined, 'pai');
  }

  terminalSocket(place: ITerminalPlace, start: boolean): WebSocket {
    const path = `${terminalPath(place)}/websocket`;
    return this._socket(path, { start: start || undefined }, 'pai');
  }

  async output(job: string): Promise<IJobBundle> {
    const path = `output/${encodeURIComponent(job)}`;
    const answer = await this._request('GET', path, undefined, 'pai');
    return answer.json() as Promise<IJobBundle>;
  }

  async log(
    job: string,
    target: ILogTarget,
    offset: number,
    limit: number
  ): Promise<ILogPage> {
    const path = withQuery(`${this._jobPath(job)}/logs`, {
      ...target,
      offset,
      limit
    });
    const response = await this._request('GET', path);
    const bytes = await response.arrayBuffer();
    const first = Number(response.headers.get('X-Pai-Offset') ?? 0);
    const next = response.headers.get('X-Pai-Next');
    return {
      bytes,
      offset: first,
      next: next === null ? first + bytes.byteLength : Number(next)
    };
  }

  allEvents(position: number | string | null): WebSocket {
    return this._stream('events/stream', { position: position ?? undefined });
  }

  jobEvents(job: string, after: number): WebSocket {
    return this._stream(`${this._jobPath(job)}/events/stream`, { after });
  }

  followLog(job: string, target: ILogTarget, offset: number): WebSocket {
    return this._stream(`${this._jobPath(job)}/logs/stream`, {
      ...target,
      offset
    });
  }

  async wayTo(ticket: ITicket): Promise<Way> {
    const base = new URL(this._settings.baseUrl, window.location.href).href;
    const { fetch } = this._settings;
    return wayTo(ticket, base, {
      reads: (address, text) =>
        inTime(async signal => {
          const answer = await fetch(
            new Request(address, { credentials: 'omit', signal })
          );
          return answer.ok && (await beginningOf(answer)) === text;
        }, false),
      page: address =>
        inTime<string | null>(async signal => {
          const answer = await ServerConnection.makeRequest(
            address,
            { headers: { Accept: 'text/html' }, signal },
            this._settings
          );
          const type = answer.headers.get('Content-Type') ?? '';
          const isPage = answer.ok && type.startsWith('text/html');
          return isPage ? await beginningOf(answer) : null;
        }, null)
    });
  }

  private _jobPath(job: string): string {
    return `jobs/${encodeURIComponent(job)}`;
  }

  /** A request whose answer is JSON of the contract's type. */
  private async _json<T>(
    method: string,
    path: string,
    body?: string
  ): Promise<T> {
    const response = await this._request(method, path, body);
    return (await response.json()) as T;
  }

  /** What the Jupyter server finds out by logging in to a task itself. */
  private async _reach<T>(what: string, job: string): Promise<T> {
    const path = `${what}/${encodeURIComponent(job)}`;
    const response = await this._request('POST', path, undefined, 'pai');
    return response.json() as Promise<T>;
  }

  private async _request(
    method: string,
    path: string,
    body?: string,
    below = API,
    headers: Readonly<Record<string, string>> = {}
  ): Promise<Response> {
    const url = URLExt.join(this._settings.baseUrl, below, path);
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(
        url,
        // Never from the browser's cache; "no-store" would do too, but JupyterLab then adds a bare
        // number to the query, which a strict server refuses.
        {
          method,
          body,
          cache: 'reload',
          headers: { Accept: OUR_SHAPES, ...headers }
        },
        this._settings
      );
    } catch (reason) {
      if (reason instanceof ServerConnection.NetworkError) {
        throw new PaiError(0, { code: AwayCode.jupyter });
      }
      throw reason;
    }
    if (!response.ok) {
      throw await errorOf(response);
    }
    return response;
  }

  /** A stream of the backend, with a sign of life. */
  private _stream(path: string, query: Query): WebSocket {
    const alive = { ...query, heartbeat: HEARTBEAT };
    return this._socket(path, alive, API);
  }

  private _socket(path: string, query: Query, below: string): WebSocket {
    const { wsUrl, appendToken, token, WebSocket } = this._settings;
    const signed = { ...query, token: appendToken ? token : undefined };
    return new WebSocket(withQuery(URLExt.join(wsUrl, below, path), signed));
  }

  private readonly _settings: ServerConnection.ISettings;
}
