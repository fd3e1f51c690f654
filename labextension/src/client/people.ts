/**
 * Calls about users, for administrators and managers.
 */

import type { Connection } from '../request';
import { pathOf, withQuery } from '../request';
import type { IPaiClient } from '../tokens';

/** The calls. */
export function peopleCalls(connection: Connection) {
  return {
    me: () => connection.json('GET', pathOf('users', 'me')),
    users: () => connection.json('GET', 'users'),
    holdings: user => connection.json('GET', pathOf('users', user, 'holdings')),
    addUser: async user => {
      await connection.api('POST', 'users', { body: JSON.stringify(user) });
    },
    changeUser: async (user, data) => {
      const body = JSON.stringify({ data, patch: true });
      await connection.api('PUT', pathOf('users', user), { body });
    },
    setDisabled: async (user, disabled) => {
      const method = disabled ? 'PUT' : 'DELETE';
      await connection.api(method, pathOf('lockouts', user));
    },
    removeUser: async (user, heir) => {
      const path = withQuery(pathOf('users', user), { transferTo: heir });
      await connection.api('DELETE', path);
    }
  } satisfies Partial<IPaiClient>;
}
