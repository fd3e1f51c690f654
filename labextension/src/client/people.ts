/**
 * Calls about users and their groups, for administrators and managers.
 */

import type { Connection } from '../request';
import { pathOf, withQuery } from '../request';
import type { IGroupChange, IPaiClient } from '../tokens';

/** A change of a group as the wire has it. */
function groupData(data: IGroupChange) {
  const { virtualClusters, manages, ...rest } = data;
  return { ...rest, extension: { acls: { virtualClusters, manages } } };
}

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
    },
    groups: () => connection.json('GET', 'groups'),
    addGroup: async (groupname, data) => {
      const body = JSON.stringify({ groupname, ...groupData(data) });
      await connection.api('POST', 'groups', { body });
    },
    changeGroup: async (name, change) => {
      const body = JSON.stringify({ data: groupData(change), patch: true });
      await connection.api('PUT', pathOf('groups', name), { body });
    },
    removeGroup: async name => {
      await connection.api('DELETE', pathOf('groups', name));
    }
  } satisfies Partial<IPaiClient>;
}
