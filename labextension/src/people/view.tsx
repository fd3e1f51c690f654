/**
 * The page of users: who may sign in, what each may do, and the buttons that change that.
 */

import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import { usersIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import { DataRow, DataTable } from '../cluster/table';
import { ModelView, ProblemBox } from '../components';
import { CommandIDs, DOMAIN } from '../tokens';
import type { IUser } from '../types';
import type { PeopleModel } from './model';

interface IPageProps {
  readonly model: PeopleModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

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
    <div className="jp-pai-People-buttons">
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

function UsersTable(props: IPageProps): JSX.Element {
  const { model, trans } = props;
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
      {model.state.users.map(user => (
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

/** The page as a function of the model's state. */
export function People(props: IPageProps): JSX.Element {
  const { model, commands, trans } = props;
  const { me, problem } = model.state;
  const mayChange = me !== null && (me.admin || me.manages.length > 0);
  return (
    <>
      <header>
        <h2>{trans.__('Users')}</h2>
        {me?.admin && (
          <button
            className="jp-mod-styled"
            onClick={() => void commands.execute(CommandIDs.addUser)}
          >
            {trans.__('Add User…')}
          </button>
        )}
      </header>
      {problem && <ProblemBox problem={problem} trans={trans} />}
      {!me && !problem && <p>{trans.__('Loading…')}</p>}
      {me && !mayChange && (
        <p>
          {trans.__(
            'Administrators change users, and managers who may use their virtual clusters. You are neither.'
          )}
        </p>
      )}
      {mayChange && <UsersTable {...props} />}
    </>
  );
}

/** The page. The model outlives it. */
export class PeoplePage extends ModelView<IPageProps> {
  constructor(options: PeoplePage.IOptions) {
    const { model, commands, translator } = options;
    const trans = translator.load(DOMAIN);
    super(People, { model, commands, trans });
    this._model = model;
    this.addClass('jp-pai-Cluster');
    this.title.icon = usersIcon;
    this.title.label = trans.__('Users');
    this.title.closable = true;
    // Reached by the keyboard, so that it can be scrolled.
    this.node.tabIndex = 0;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Users'));
  }

  /** Others may have changed them meanwhile. */
  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    void this._model.refresh();
  }

  private readonly _model: PeopleModel;
}

/** Options of {@link PeoplePage}. */
export namespace PeoplePage {
  /** What the page is made from. */
  export interface IOptions {
    readonly model: PeopleModel;
    readonly commands: CommandRegistry;
    readonly translator: ITranslator;
  }
}
