/**
 * The table of users: a page of those that a filter leaves.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { DataRow, DataTable } from '../cluster/table';
import { CommandIDs } from '../tokens';
import type { IUser } from '../types';
import type { IPageProps } from './view';

/** Rows of a page: more are slow to lay out and to look through. */
const ROWS = 100;

function rightsText(trans: TranslationBundle, user: IUser): string {
  if (user.admin) {
    return trans.__('Administrator');
  }
  return user.manages.length > 0
    ? trans.__('Manages %1', user.manages.join(', '))
    : '';
}

function stateText(trans: TranslationBundle, user: IUser): string {
  if (user.disabled) {
    return trans.__('Disabled');
  }
  return user.mustChangePassword
    ? trans.__('Must set a password')
    : trans.__('May sign in');
}

function Buttons(props: IPageProps & { user: IUser }): JSX.Element {
  const { model, commands, trans, user } = props;
  const { me } = model.state;
  const { username, configured, disabled } = user;
  const button = (
    id: string,
    label: string,
    about: string,
    off = false,
    args: { readonly disabled?: boolean } = {}
  ) => (
    <button
      aria-label={about}
      className="jp-mod-styled"
      disabled={off}
      onClick={() => void commands.execute(id, { user: username, ...args })}
    >
      {label}
    </button>
  );
  const isMe = username === me?.username;
  return (
    <div className="jp-pai-Cluster-buttons jp-pai-People-buttons">
      {button(
        CommandIDs.editUser,
        trans.__('Edit…'),
        trans.__('Edit %1', username)
      )}
      {me?.admin && (
        <>
          {button(
            CommandIDs.newPassword,
            trans.__('New Password…'),
            trans.__('Make a new password for %1', username),
            configured
          )}
          {button(
            CommandIDs.disableUser,
            disabled ? trans.__('Enable') : trans.__('Disable…'),
            disabled
              ? trans.__('Enable %1', username)
              : trans.__('Disable %1', username),
            isMe,
            { disabled: !disabled }
          )}
          {button(
            CommandIDs.removeUser,
            trans.__('Remove…'),
            trans.__('Remove %1', username),
            isMe || configured
          )}
        </>
      )}
    </div>
  );
}

/** The users whose name or mail address has a text. */
export function usersWith(
  users: readonly IUser[],
  text: string
): readonly IUser[] {
  const wanted = text.trim().toLowerCase();
  const has = (value: string) => value.toLowerCase().includes(wanted);
  return users.filter(({ username, email }) => has(username) || has(email));
}

function Rows(props: IPageProps & { users: readonly IUser[] }): JSX.Element {
  const { trans, users } = props;
  const columns = [
    { label: trans.__('User') },
    { label: trans.__('E-mail') },
    { label: trans.__('Rights') },
    { label: trans.__('Groups') },
    { label: trans.__('Virtual clusters') },
    { label: trans.__('State') },
    { label: trans.__('Change') }
  ];
  return (
    <DataTable columns={columns} label={trans.__('Users')}>
      {users.map(user => (
        <DataRow
          cells={[
            user.username,
            user.email,
            rightsText(trans, user),
            user.grouplist.slice(1).join(', '),
            user.virtualCluster.join(', '),
            stateText(trans, user),
            <Buttons {...props} key="buttons" user={user} />
          ]}
          columns={columns}
          header={0}
          key={user.username}
          troubled={user.disabled}
        />
      ))}
    </DataTable>
  );
}

/** Which of many rows are shown, and the buttons that show others. */
function Pager(props: {
  trans: TranslationBundle;
  first: number;
  count: number;
  show: (first: number) => void;
}): JSX.Element {
  const { trans, first, count, show } = props;
  const end = Math.min(count, first + ROWS);
  const isFirst = first === 0;
  const isLast = end === count;
  return (
    <div className="jp-pai-People-bar">
      <span role="status">
        {count > ROWS
          ? trans.__('%1 to %2 of %3 users', first + 1, end, count)
          : trans._n('%1 user', '%1 users', count)}
      </span>
      {count > ROWS && (
        <>
          <button
            aria-disabled={isFirst}
            className="jp-mod-styled"
            onClick={() => isFirst || show(first - ROWS)}
          >
            {trans.__('Previous')}
          </button>
          <button
            aria-disabled={isLast}
            className="jp-mod-styled"
            onClick={() => isLast || show(first + ROWS)}
          >
            {trans.__('Next')}
          </button>
        </>
      )}
    </div>
  );
}

/** The filter and a page of the users that it leaves. */
export function UsersTable(props: IPageProps): JSX.Element {
  const { model, trans } = props;
  const [text, setText] = React.useState('');
  const [wanted, show] = React.useState(0);
  const found = usersWith(model.state.users, text);
  // Users may have been removed since that page was asked for.
  const last = Math.max(0, Math.ceil(found.length / ROWS) - 1) * ROWS;
  const first = Math.min(wanted, last);
  return (
    <>
      <div className="jp-pai-People-bar">
        <input
          aria-label={trans.__('Filter by name or e-mail')}
          className="jp-mod-styled"
          onChange={event => {
            setText(event.target.value);
            show(0);
          }}
          placeholder={trans.__('Filter by name or e-mail')}
          type="search"
          value={text}
        />
        <Pager count={found.length} first={first} show={show} trans={trans} />
      </div>
      {found.length > 0 && (
        <Rows {...props} users={found.slice(first, first + ROWS)} />
      )}
      {found.length === 0 && <p>{trans.__('No user matches.')}</p>}
    </>
  );
}
