/**
 * The commands that change groups of users.
 */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { CommandRegistry } from '@lumino/commands';
import { reported } from '../feedback';
import { FormDialog } from '../form_dialog';
import { CommandIDs } from '../tokens';
import type { IUserGroup } from '../types';
import type { IPeopleOptions } from './commands';
import { EVERYONE, GroupForm } from './group_form';

type Act = (options: IPeopleOptions, group: IUserGroup) => Promise<void>;

async function addGroup({ client, trans }: IPeopleOptions): Promise<void> {
  await FormDialog.ask({
    trans,
    title: trans.__('Add a group'),
    form: new GroupForm(trans, null, true),
    label: trans.__('Add'),
    change: ({ name, change }) => client.addGroup(name, change)
  });
}

const editGroup: Act = async ({ client, model, trans }, group) => {
  const { groupname } = group;
  const wasOpen = group.extension.acls.everything;
  await FormDialog.ask({
    trans,
    title: trans.__('Edit the group %1', groupname),
    form: new GroupForm(trans, group, model.state.me?.admin ?? false),
    label: trans.__('Save'),
    change: async ({ change, everything }) => {
      if (everything && !wasOpen) {
        await client.removeGroup(EVERYONE);
      } else if (Object.keys(change).length > 0) {
        await client.changeGroup(groupname, change);
      }
    }
  });
};

const removeGroup: Act = async ({ client, trans }, { groupname }) => {
  const { button } = await showDialog({
    title: trans.__('Remove the group %1?', groupname),
    body: trans.__(
      'Its members lose what it lets them use: their running jobs go on there, and waiting ones do not start. What is shared with the group is no longer shared.'
    ),
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({ label: trans.__('Remove') })
    ]
  });
  if (button.accept) {
    await client.removeGroup(groupname);
  }
};

/** Add the commands. */
export function addGroupCommands(
  commands: CommandRegistry,
  options: IPeopleOptions
): void {
  const { model, trans } = options;
  const done = async (change: Promise<void>) => {
    await reported(trans, change);
    await model.refresh();
  };
  commands.addCommand(CommandIDs.addGroup, {
    label: trans.__('Add a Group of PAI Users…'),
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => done(addGroup(options))
  });
  const add = (id: string, label: string, act: Act) =>
    commands.addCommand(id, {
      label,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            group: { type: 'string', description: 'Name of the group.' }
          },
          required: ['group']
        }
      },
      isEnabled: args => model.group(args.group) !== null,
      execute: async args => {
        const group = model.group(args.group);
        if (group) {
          await done(act(options, group));
        }
      }
    });
  add(CommandIDs.editGroup, trans.__('Edit Group…'), editGroup);
  add(CommandIDs.removeGroup, trans.__('Remove Group…'), removeGroup);
}
