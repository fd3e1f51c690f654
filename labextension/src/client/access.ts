/**
 * Calls about reaching jobs: services, shares, programs and terminals.
 */

import { REACHED, wayTo } from '../address';
import type { Connection } from '../request';
import { pathOf, withQuery } from '../request';
import type { IPaiClient, ITerminalPlace, ITerminalSession } from '../tokens';
import type { IMadeLink, IShare } from '../types';
import { jobPath } from './jobs';

/** The path of a terminal, or of all in a task. */
function terminalPath(place: Partial<ITerminalPlace>): string {
  const { job, role, index, name } = place;
  const parts = [job, role, index, name].filter(part => part !== undefined);
  return pathOf('terminals', ...parts);
}

/** Have the Jupyter server lead a port of its machine to a service; the port is closed again where it is not reached. */
async function localAddress(
  connection: Connection,
  service: string
): Promise<string | null> {
  type Port = { readonly url: string; readonly proof: string };
  const path = pathOf('local', service);
  const { url, proof } = await connection.server<Port>('POST', path);
  if (await connection.reads(new URL(url).origin + REACHED, proof)) {
    return url;
  }
  await connection.server('DELETE', path);
  return null;
}

/** The calls. */
export function accessCalls(connection: Connection) {
  return {
    ticket: (job, label, role, index) => {
      const path = jobPath(job, 'services', label, 'ticket');
      return connection.json('POST', withQuery(path, { role, index }));
    },
    wayTo: ticket => {
      const { baseUrl } = connection.settings;
      return wayTo(ticket, new URL(baseUrl, window.location.href).href, {
        reads: (address, text) => connection.reads(address, text),
        page: address => connection.page(address),
        local: service => localAddress(connection, service)
      });
    },
    shares: async () => {
      const [received, given] = await Promise.all([
        connection.rows<IShare>('shares'),
        connection.rows<IShare>(withQuery('shares', { given: true }))
      ]);
      return { received, given };
    },
    jobShares: job => connection.rows(jobPath(job, 'shares')),
    jobKey: async (job, format) => {
      const path = withQuery(jobPath(job, 'key'), { format });
      const answer = await connection.api('GET', path);
      const told = answer.headers.get('Content-Disposition') ?? '';
      const name = /filename="([^"]+)"/.exec(told)?.[1] ?? 'key';
      return { name, text: await answer.text() };
    },
    share: async (job, user, label, lifetimeS) => {
      const body = JSON.stringify({ user, only: [`port:${label}`], lifetimeS });
      await connection.api('POST', jobPath(job, 'shares'), { body });
    },
    makeLink: async (job, label, lifetimeS) => {
      const body = JSON.stringify({ label, lifetimeS });
      const path = jobPath(job, 'links');
      return (await connection.json<IMadeLink>('POST', path, body)).url;
    },
    endShare: async (job, user) => {
      await connection.api('DELETE', jobPath(job, 'shares', user));
    },
    // What the Jupyter server finds out by logging in to a task itself.
    guide: job => connection.server('POST', pathOf('connect', job)),
    codeServer: job => connection.server('POST', pathOf('code', job)),
    doctor: job => connection.server('POST', pathOf('doctor', job)),
    terminals: async task => {
      type Found = { readonly terminals: readonly ITerminalSession[] };
      const path = terminalPath(task);
      return (await connection.server<Found>('GET', path)).terminals;
    },
    endTerminal: place => connection.server('DELETE', terminalPath(place)),
    terminalSocket: (place, start) =>
      connection.socket(`${terminalPath(place)}/websocket`, {
        start: start || undefined
      })
  } satisfies Partial<IPaiClient>;
}
