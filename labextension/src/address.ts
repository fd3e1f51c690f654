/**
 * Which of a service's addresses works from this browser, and what is missing when none does. Fetches nothing itself.
 */

import { URLExt } from '@jupyterlab/coreutils';
import type { ITicket } from './types';

/** What can be found out from where the browser is. */
export interface ISight {
  /** Whether this browser reads `text` at `address`. */
  reads(address: string, text: string): Promise<boolean>;
  /** The beginning of a page below the Jupyter server; null while none is there. */
  page(address: string): Promise<string | null>;
  /** An address of a port of the Jupyter server's machine that leads to a service; null where it is not this computer. */
  local(service: string): Promise<string | null>;
}

/**
 * Why no address works: the port of the backend is not forwarded to this computer (`port`), the backend has no domain for
 * services (`domain`), names below its domain do not lead to it from here (`names`), or a service of another user, which
 * opens at its own address only, cannot be reached there (`guest`).
 */
export type Missing =
  | { readonly kind: 'port'; readonly port: string }
  | { readonly kind: 'domain' }
  | { readonly kind: 'guest' }
  | { readonly kind: 'names'; readonly domain: string };

/** Where to send the browser, or why nowhere. */
export type Way = { readonly address: string } | { readonly missing: Missing };

const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/;
/** Where an own address shows whose it is. */
export const REACHED = '/.pai/reached';
const SIGN_IN = '.pai/signin';
const FROM_ROOT = /\s(?:href|src)\s*=\s*["'](\/(?!\/)[^"']*)/gi;

/**
 * The way to a service, for a page of the Jupyter server at `baseUrl`.
 *
 * Its own address comes first: every application works there. A name below `.localhost` means the browser's computer, so
 * it is asked for only where the Jupyter server seems to be on that computer, and must prove that it is this backend: behind
 * `ssh -L` nothing, or another backend, answers there. Below the Jupyter server's path a Jupyter works, and what has no
 * addresses from the root in its page. Else a port of the Jupyter server's machine helps where that is this computer.
 */
export async function wayTo(
  ticket: ITicket,
  baseUrl: string,
  sight: ISight
): Promise<Way> {
  const own = new URL(ticket.url);
  const isHere = LOOPBACK.test(new URL(baseUrl).hostname);
  const isLocal = LOOPBACK.test(own.hostname);
  if (
    (isHere || !isLocal) &&
    (await sight.reads(own.origin + REACHED, ticket.proof))
  ) {
    return { address: ticket.url };
  }
  if (!ticket.pathUrl) {
    return { missing: { kind: 'guest' } };
  }
  const path = ticket.pathUrl.split(SIGN_IN)[0];
  const root = URLExt.join(baseUrl, 'pai', path);
  const page = ticket.isJupyter ? null : await sight.page(root);
  if (page === null || !leavesPath(page, new URL(root).pathname)) {
    return { address: URLExt.join(baseUrl, 'pai', ticket.pathUrl) };
  }
  const local = isHere ? await sight.local(path.split('/')[2]) : null;
  if (local !== null) {
    return { address: local };
  }
  if (!isLocal) {
    const domain = own.hostname.slice(own.hostname.indexOf('.') + 1);
    return { missing: { kind: 'names', domain } };
  }
  return {
    missing: isHere ? { kind: 'port', port: own.port } : { kind: 'domain' }
  };
}

/** Whether a page names something from the root of its host that is not below `path`. */
export function leavesPath(page: string, path: string): boolean {
  return [...page.matchAll(FROM_ROOT)].some(
    ([, address]) => !address.startsWith(path)
  );
}
