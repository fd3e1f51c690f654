/**
 * What the Jupyter server does itself: it makes jobs of notebooks, programs and sweeps, and knows the user's backends.
 */

import type { Connection } from '../request';
import { pathOf } from '../request';
import type { IPaiClient } from '../tokens';

/** The calls. */
export function runCalls(connection: Connection) {
  return {
    runNotebook: run => connection.server('POST', 'notebooks', run),
    runProgram: run => connection.server('POST', 'programs', run),
    sendFolder: path => connection.server('POST', 'folders', { path }),
    notebookRun: job => connection.server('GET', pathOf('notebooks', job)),
    fetchNotebook: job => connection.server('POST', pathOf('notebooks', job)),
    submitSweep: sweep => connection.server('POST', 'sweeps', sweep),
    sweep: name => connection.server('GET', pathOf('sweeps', name)),
    cloneSweep: (name, copy) =>
      connection.server('POST', pathOf('sweeps', name), { name: copy }),
    contexts: () => connection.server('GET', 'contexts'),
    useContext: name => connection.server('PUT', 'contexts', { name })
  } satisfies Partial<IPaiClient>;
}
