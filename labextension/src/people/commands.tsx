/**
 * The commands that show and change users. Each asks first, and says what becomes of what the user has.
 */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { usersIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import * as React from 'react';
import { reported } from '../feedback';
import { FormDialog } from '../form_dialog';
import type { IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import type { IHoldings, IUser } from '../types';
import { HeirForm, newPassword, UserForm } from './forms';
import type { PeopleModel } from './model';

/** What the commands act on. */
export interface IPeopleOptions {
  readonly client: IPaiClient;
  readonly model: PeopleModel;
  readonly trans: TranslationBundle;
  /** Show the page. */
  readonly show: () => Promise<void>;
}

type Change = (
  options: IPeopleOptions,
  user: IUser,
  args: ReadonlyPartialJSONObject
) => Promise<void>;

/** What a user has, in a sentence each. */
export function holdingsText(
  trans: TranslationBundle,
  held: IHoldings
): string {
  const jobs = held.activeJobs.join(', ') || trans.__('none');
  return [
    trans.__('Active jobs: %1. Ended jobs and files stay.', jobs),
    trans.__(
      'Workspace names: %1. Templates: %2. Drafts: %3.',
      held.addresses.join(', ') || trans.__('none'),
      held.templates,
      held.drafts
    ),
    trans.__(
      'SSH keys: %1. Certificates: %2. Sessions and tokens: %3.',
      held.keys,
      held.certificates,
      held.tokens
    )
  ].join(' ');
}

/** Show a password, which is kept nowhere. */
async function showPassword(
  trans: TranslationBundle,
  user: string,
  password: string
): Promise<void> {
  await showDialog({
    title: trans.__('The password of %1', user),
    body: (
      <div className="jp-pai-Connect">
        <p>
          {trans.__(
            'It is shown this once. %1 sets another at the first sign-in.',
            user
          )}
        </p>
        <p className="jp-pai-Connect-command">
          <code>{password}</code>
        </p>
      </div>
    ),
    buttons: [Dialog.okButton({ label: trans.__('Close') })]
  });
}

async function addUser({ client, trans }: IPeopleOptions): Promise<void> {
  const password = newPassword();
  const mustChangePassword = true;
  let username = '';
  const isAdded = await FormDialog.ask({
    trans,
    title: trans.__('Add a user'),
    form: new UserForm(trans, null, true),
    label: trans.__('Add'),
    change: ({ name, rights }) => {
      username = name;
      const user = { username, password, mustChangePassword, ...rights };
      return client.addUser(user);
    }
  });
  if (isAdded) {
    await showPassword(trans, username, password);
  }
}

const editUser: Change = async ({ client, model, trans }, user) => {
  await FormDialog.ask({
    trans,
    title: trans.__('Edit %1', user.username),
    form: new UserForm(trans, user, model.state.me?.admin ?? false),
    label: trans.__('Save'),
    change: async ({ rights }) => {
      if (Object.keys(rights).length > 0) {
        await client.changeUser(user.username, rights);
      }
    }
  });
};

const setPassword: Change = async ({ client, trans }, user) => {
  const { username } = user;
  const { button } = await showDialog({
    title: trans.__('Make a new password for %1?', username),
    body: trans.__('Their sessions and application tokens end.'),
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({ label: trans.__('Make') })
    ]
  });
  if (button.accept) {
    const password = newPassword();
    const mustChangePassword = true;
    await client.changeUser(username, {
      newPassword: password,
      mustChangePassword
    });
    await showPassword(trans, username, password);
  }
};

const disableUser: Change = async ({ client, trans }, user, args) => {
  const { username } = user;
  if (args.disabled === false) {
    return client.setDisabled(username, false);
  }
  const held = await client.holdings(username);
  const { button } = await showDialog({
    title: trans.__('Disable %1?', username),
    body: `${trans.__('All requests and logins are refused, and those that are open end. Jobs go on, and nothing is removed.')} ${holdingsText(trans, held)}`,
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({ label: trans.__('Disable') })
    ]
  });
  if (button.accept) {
    await client.setDisabled(username, true);
  }
};

const removeUser: Change = async ({ client, model, trans }, user) => {
  const { username } = user;
  const held = await client.holdings(username);
  const names = model.state.users.map(each => each.username);
  const others = names.filter(each => each !== username);
  const { value, button } = await showDialog({
    title: trans.__('Remove %1?', username),
    body: new HeirForm(trans, holdingsText(trans, held), others),
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({ label: trans.__('Remove') })
    ]
  });
  if (button.accept) {
    await client.removeUser(username, value ?? '');
  }
};

/** Add the commands. */
export function addPeopleCommands(
  commands: CommandRegistry,
  options: IPeopleOptions
): void {
  const { model, trans } = options;
  const done = async (change: Promise<void>) => {
    await reported(trans, change);
    await model.refresh();
  };
  commands.addCommand(CommandIDs.showPeople, {
    label: trans.__('Show the Users of PAI'),
    caption: trans.__('Who may sign in, and what each may do'),
    icon: usersIcon,
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => options.show()
  });
  commands.addCommand(CommandIDs.addUser, {
    label: trans.__('Add a User of PAI…'),
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => done(addUser(options))
  });
  const add = (id: string, label: string, change: Change) =>
    commands.addCommand(id, {
      label,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            user: { type: 'string', description: 'Name of the user.' },
            disabled: {
              type: 'boolean',
              description: 'Whether to disable the user, or to end that.'
            }
          },
          required: ['user']
        }
      },
      isEnabled: args => model.user(args.user) !== null,
      execute: async args => {
        const user = model.user(args.user);
        if (user) {
          await done(change(options, user, args));
        }
      }
    });
  add(CommandIDs.editUser, trans.__('Edit User…'), editUser);
  add(CommandIDs.newPassword, trans.__('New Password of User…'), setPassword);
  add(CommandIDs.disableUser, trans.__('Disable User…'), disableUser);
  add(CommandIDs.removeUser, trans.__('Remove User…'), removeUser);
}
