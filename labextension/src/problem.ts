/**
 * Failed requests: what the backend reports, and what is told when none was reached.
 */

import type { IErrorBody, IFault, IWording } from './types';

/** Codes of failures that no backend reports, because none was reached. */
export namespace AwayCode {
  /** The Jupyter server does not answer. */
  export const jupyter = 'JupyterAway';
  /** A request was taken, and no answer comes. */
  export const silent = 'NoAnswer';
  /** The Jupyter server answers and does not know us. */
  export const extension = 'ServerExtensionMissing';
  /** The Jupyter server knows us and cannot reach the backend. */
  export const backend = 'UnavailableError';
  /** The browser does not read a file that the user chose. */
  export const file = 'FileUnreadable';
}

/** A failed request: the wire's error, or one of {@link AwayCode}. */
export class PaiError extends Error {
  constructor(status: number, body: Partial<IErrorBody>) {
    super(body.message ?? '');
    this.name = 'PaiError';
    this.status = status;
    this.code = body.code ?? 'UnknownError';
    this.hint = body.hint ?? '';
    this.wording = body.wording ?? null;
    this.hintWording = body.hintWording ?? null;
    this.faults = body.errors ?? [];
  }

  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** Stable machine word. */
  readonly code: string;
  /** The remedy, in a sentence; may be empty. */
  readonly hint: string;
  /** How the message was made; null where another program wrote it. */
  readonly wording: IWording | null;
  /** How the hint was made. */
  readonly hintWording: IWording | null;
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
export async function errorOf(response: Response): Promise<PaiError> {
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
