import { Notification } from '@jupyterlab/apputils';
import {
  acceptDialog,
  dismissDialog,
  waitForDialog
} from '@jupyterlab/testing';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { flushSync } from 'react-dom';
import type { Root } from 'react-dom/client';
import { createRoot } from 'react-dom/client';
import { addPeopleCommands } from '../src/people/commands';
import { namesOf, newPassword } from '../src/people/forms';
import { addGroupCommands } from '../src/people/group_commands';
import { PeopleModel } from '../src/people/model';
import { People } from '../src/people/view';
import { CommandIDs } from '../src/tokens';
import type { IHoldings, IUser, IUserGroup } from '../src/types';
import { FakeServer, json } from './fake_server';

const trans = nullTranslator.load('jupyter_pai');

function user(username: string, change: Partial<IUser> = {}): IUser {
  return {
    username,
    email: `${username}@example.org`,
    grouplist: ['default', 'vision'],
    admin: false,
    virtualCluster: ['default', 'vc1'],
    manages: [],
    own: { use: ['vc1'], manages: [] },
    disabled: false,
    mustChangePassword: false,
    configured: false,
    storageConfig: [],
    extension: {} as IUser['extension'],
    ...change
  };
}

function group(
  groupname: string,
  use: readonly string[],
  change: Partial<IUserGroup> = {},
  acls: Partial<IUserGroup['extension']['acls']> = {}
): IUserGroup {
  return {
    groupname,
    description: '',
    externalName: '',
    members: [],
    extension: {
      acls: {
        admin: false,
        virtualClusters: use,
        manages: [],
        everything: false,
        storageConfigs: [],
        ...acls
      }
    },
    ...change
  };
}

const OPEN = group('default', ['default', 'vc1'], {}, { everything: true });
const ADMINS = group('admingroup', ['default'], {}, { everything: true });

const HELD = {
  activeJobs: ['train'],
  endedJobs: 2,
  addresses: ['lab'],
  templates: 1,
  drafts: 0,
  files: '/ann',
  keys: 3,
  certificates: 1,
  tokens: 2
} as unknown as IHoldings;

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) {
    await new Promise(resolve => setTimeout(resolve));
  }
}

describe('the page of users', () => {
  let server: FakeServer;
  let model: PeopleModel;
  let commands: CommandRegistry;
  let host: HTMLElement;
  let root: Root;

  const show = async (
    me: IUser,
    users: readonly IUser[],
    groups: readonly IUserGroup[] = [OPEN, ADMINS]
  ) => {
    server.on('GET users/me', () => json(me));
    server.on('GET users', () => json(users));
    server.on('GET groups', () => json(groups));
    await model.refresh();
    const props = { model, commands, trans };
    flushSync(() => root.render(<People {...props} />));
  };
  const rowsOf = (table: string) =>
    [...host.querySelectorAll(`table[aria-label="${table}"] tbody tr`)].map(
      row => [...row.children].map(cell => cell.textContent!)
    );
  const button = (label: string) =>
    host.querySelector<HTMLButtonElement>(`button[aria-label="${label}"]`);
  const sent = () =>
    server.requests
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path, body, query }) => [
        `${method} ${path}?${query.toString()}`.replace(/\?$/, ''),
        body ? (JSON.parse(body) as unknown) : null
      ]);
  const field = (label: string) =>
    [...document.querySelectorAll('.jp-Dialog label')]
      .find(each => each.textContent!.startsWith(label))!
      .querySelector<HTMLInputElement>('input, textarea')!;
  const run = async (
    id: string,
    args: { user?: string; disabled?: boolean; group?: string }
  ) => {
    const done = commands.execute(id, args);
    await waitForDialog();
    return { done };
  };

  beforeEach(() => {
    Notification.dismiss();
    server = new FakeServer();
    model = new PeopleModel(server.client);
    commands = new CommandRegistry();
    const options = {
      client: server.client,
      model,
      trans,
      show: () => Promise.resolve()
    };
    addPeopleCommands(commands, options);
    addGroupCommands(commands, options);
    host = document.createElement('div');
    document.body.append(host);
    root = createRoot(host);
  });

  afterEach(() => {
    model.dispose();
    root.unmount();
    host.remove();
  });

  const admin = user('root', { admin: true, configured: true });

  it('shows what each may do, by name', async () => {
    await show(admin, [
      user('bob', { manages: ['vc1'], disabled: true }),
      user('ann', { mustChangePassword: true }),
      admin
    ]);
    const rows = rowsOf('Users').map(row => row.slice(0, 6));
    const where = ['vision', 'default, vc1'];
    expect(rows).toEqual([
      ['ann', 'ann@example.org', '', ...where, 'Must set a password'],
      ['bob', 'bob@example.org', 'Manages vc1', ...where, 'Disabled'],
      ['root', 'root@example.org', 'Administrator', ...where, 'May sign in']
    ]);
    expect(button('Remove root')!.disabled).toBe(true);
    expect(button('Disable root')!.disabled).toBe(true);
    expect(button('Enable bob')!.textContent).toBe('Enable');
  });

  it('lets managers say who may use what, and others see nothing', async () => {
    const manager = user('bob', { manages: ['vc1'] });
    await show(manager, [user('ann'), manager]);
    expect(button('Edit ann')).not.toBeNull();
    expect(button('Remove ann')).toBeNull();
    expect(host.textContent).not.toContain('Add User');
    server.on('PUT users/ann', () => json({}));
    const { done } = await run(CommandIDs.editUser, { user: 'ann' });
    expect(document.querySelectorAll('.jp-Dialog label')).toHaveLength(1);
    field('Virtual clusters of their own').value = 'vc1, vc2';
    await acceptDialog();
    await done;
    const data = { virtualCluster: ['vc1', 'vc2'] };
    expect(sent()).toEqual([['PUT users/ann', { data, patch: true }]]);
    await show(user('ann'), [user('ann')]);
    expect(host.querySelector('table')).toBeNull();
    expect(host.textContent).toContain('You are neither');
  });

  it('adds a user with a password that is shown once and told nowhere else', async () => {
    await show(admin, [admin]);
    server.on('POST users', () => json({}));
    const { done } = await run(CommandIDs.addUser, {});
    field('Name').value = 'ann';
    field('Groups').value = 'vision, , text';
    await acceptDialog();
    await until(() => document.querySelector('.jp-Dialog code') !== null);
    const [[request, body]] = sent() as [string, Record<string, string>][];
    const { password, ...rest } = body;
    expect(request).toBe('POST users');
    expect(rest).toEqual({
      username: 'ann',
      mustChangePassword: true,
      grouplist: ['vision', 'text']
    });
    expect(password).toHaveLength(16);
    expect(document.querySelector('.jp-Dialog')!.textContent).toContain(
      password
    );
    await acceptDialog();
    await done;
    const told = Notification.manager.notifications.map(each => each.message);
    expect(told.join()).not.toContain(password);
  });

  it('changes what differs and nothing else', async () => {
    await show(admin, [admin, user('ann')]);
    const same = await run(CommandIDs.editUser, { user: 'ann' });
    await acceptDialog();
    await same.done;
    expect(sent()).toEqual([]);
    server.on('PUT users/ann', () => json({}));
    const { done } = await run(CommandIDs.editUser, { user: 'ann' });
    field('Administrator').checked = true;
    field('Groups').value = '';
    await acceptDialog();
    await done;
    const data = { admin: true, grouplist: [] };
    expect(sent()).toEqual([['PUT users/ann', { data, patch: true }]]);
  });

  it('says what a user has before it disables or removes them', async () => {
    await show(admin, [admin, user('ann'), user('bob')]);
    server.on('GET users/ann/holdings', () => json(HELD));
    server.on('PUT lockouts/ann', () => new Response(null, { status: 204 }));
    server.on('DELETE users/ann', () => json({}));
    const kept = await run(CommandIDs.disableUser, { user: 'ann' });
    expect(document.querySelector('.jp-Dialog')!.textContent).toContain(
      'Active jobs: train.'
    );
    await dismissDialog();
    await kept.done;
    expect(sent()).toEqual([]);
    const disabled = await run(CommandIDs.disableUser, { user: 'ann' });
    await acceptDialog();
    await disabled.done;
    const removed = await run(CommandIDs.removeUser, { user: 'ann' });
    const heirs =
      document.querySelector<HTMLSelectElement>('.jp-Dialog select')!;
    expect([...heirs.options].map(each => each.value)).toEqual([
      '',
      'bob',
      'root'
    ]);
    heirs.value = 'bob';
    await acceptDialog();
    await removed.done;
    expect(sent()).toEqual([
      ['PUT lockouts/ann', null],
      ['DELETE users/ann?transferTo=bob', null]
    ]);
  });

  it('enables a user without a question, and makes a new password after one', async () => {
    await show(admin, [admin, user('ann', { disabled: true })]);
    server.on('DELETE lockouts/ann', () => new Response(null, { status: 204 }));
    server.on('PUT users/ann', () => json({}));
    await commands.execute(CommandIDs.disableUser, {
      user: 'ann',
      disabled: false
    });
    const { done } = await run(CommandIDs.newPassword, { user: 'ann' });
    await acceptDialog();
    await waitForDialog();
    await acceptDialog();
    await done;
    const [lockout, changed] = sent() as [string, { data: object }][];
    expect(lockout[0]).toBe('DELETE lockouts/ann');
    expect(Object.keys(changed[1].data).sort()).toEqual([
      'mustChangePassword',
      'newPassword'
    ]);
  });

  it('tells what the backend refuses', async () => {
    await show(admin, [admin, user('ann')]);
    server.on('GET users/ann/holdings', () =>
      json({ code: 'NoUserError', message: 'There is no user ann.' }, 404)
    );
    await commands.execute(CommandIDs.removeUser, { user: 'ann' });
    expect(Notification.manager.notifications).toHaveLength(1);
    server.on('GET users', () => json({ code: 'X', message: 'away' }, 503));
    await model.refresh();
    expect(model.state.problem).not.toBeNull();
    expect(model.state.users).toHaveLength(2);
  });

  it('reads names with commas, and makes passwords that differ', () => {
    expect(namesOf(' a, b ,,')).toEqual(['a', 'b']);
    expect(newPassword()).not.toBe(newPassword());
    expect(newPassword()).toMatch(/^[\w-]{16}$/);
  });

  it('keeps what was typed of a user whom the backend refuses', async () => {
    await show(admin, [admin]);
    const message = 'A user of that name exists or existed.';
    server.on('POST users', () =>
      json({ code: 'ConflictUserError', message }, 409)
    );
    const { done } = await run(CommandIDs.addUser, {});
    field('Name').value = 'ann';
    await acceptDialog();
    const dialog = document.querySelector('.jp-Dialog')!;
    await until(() => dialog.querySelector('[role="alert"]') !== null);
    expect(dialog.textContent).toContain(message);
    expect(field('Name').value).toBe('ann');
    await dismissDialog();
    await done;
    expect(document.querySelector('.jp-Dialog')).toBeNull();
    expect(Notification.manager.notifications).toEqual([]);
  });

  describe('with many users', () => {
    const names = Array.from({ length: 10_000 }, (_, place) =>
      String(place).padStart(5, '0')
    );
    const status = () => host.querySelector('[role="status"]')!.textContent;
    const press = (label: string) =>
      flushSync(() =>
        [...host.querySelectorAll('button')]
          .find(each => each.textContent === label)!
          .click()
      );
    const filter = (text: string) => {
      const input = host.querySelector<HTMLInputElement>('input')!;
      const set = Object.getOwnPropertyDescriptor(
        HTMLInputElement.prototype,
        'value'
      )!.set!;
      set.call(input, text);
      flushSync(() =>
        input.dispatchEvent(new Event('input', { bubbles: true }))
      );
    };

    beforeEach(async () => {
      await show(admin, [
        admin,
        ...names.map(name => user(`u${name}`, { email: `${name}@x.org` }))
      ]);
    });

    it('shows a hundred at a time', () => {
      expect(rowsOf('Users')).toHaveLength(100);
      expect(status()).toBe('1 to 100 of 10001 users');
      press('Previous');
      expect(rowsOf('Users')[0][0]).toBe('root');
      press('Next');
      expect(status()).toBe('101 to 200 of 10001 users');
      expect(rowsOf('Users')[0][0]).toBe('u00099');
      press('Previous');
      expect(status()).toBe('1 to 100 of 10001 users');
    });

    it('finds users by name and mail address, whatever page is shown', () => {
      press('Next');
      filter('U0999 ');
      expect(rowsOf('Users').map(row => row[0])).toEqual(
        names.slice(9990).map(name => `u${name}`)
      );
      filter('9999@X');
      expect(rowsOf('Users').map(row => row[0])).toEqual(['u09999']);
      expect(status()).toBe('1 user');
      filter('another');
      expect(host.textContent).toContain('No user matches.');
      filter('');
      expect(status()).toBe('1 to 100 of 10001 users');
    });

    it('shows the last page where a later one was shown', async () => {
      press('Next');
      await show(admin, [admin, user('ann')]);
      expect(rowsOf('Users').map(row => row[0])).toEqual(['ann', 'root']);
    });
  });

  describe('the groups', () => {
    const VISION = group(
      'vision',
      ['vc1', 'vc2'],
      { description: 'Cameras.', members: ['ann', 'bob'] },
      { manages: ['vc2'] }
    );
    const set = (label: string, value: string) => {
      field(label).value = value;
    };
    const labels = () =>
      [...document.querySelectorAll('.jp-Dialog label')].map(
        each => each.textContent
      );

    it('are shown with members and grants', async () => {
      const many = ['a', 'b', 'c', 'd', 'e', 'f'];
      await show(
        admin,
        [admin],
        [OPEN, ADMINS, VISION, group('many', [], { members: many })]
      );
      expect(rowsOf('Groups').map(row => row.slice(0, 5))).toEqual([
        ['default', '', 'all users', 'all', ''],
        ['admingroup', '', 'all administrators', 'all', ''],
        ['vision', 'Cameras.', '2: ann, bob', 'vc1, vc2', 'vc2'],
        ['many', '', '6: a, b, c, d, e, …', '', '']
      ]);
      expect(button('Edit the group admingroup')).toBeNull();
      expect(button('Remove the group default')).toBeNull();
    });

    it('are added by administrators', async () => {
      await show(admin, [admin]);
      server.on('POST groups', () => json({}, 201));
      const { done } = await run(CommandIDs.addGroup, {});
      set('Name', 'vision');
      set('Description', 'Cameras.');
      set('Members', 'ann, bob');
      set('Virtual clusters, with', 'vc1');
      await acceptDialog();
      await done;
      expect(sent()).toEqual([
        [
          'POST groups',
          {
            groupname: 'vision',
            description: 'Cameras.',
            members: ['ann', 'bob'],
            extension: { acls: { virtualClusters: ['vc1'] } }
          }
        ]
      ]);
    });

    it('are changed where something differs', async () => {
      await show(admin, [admin], [OPEN, ADMINS, VISION]);
      const same = await run(CommandIDs.editGroup, { group: 'vision' });
      expect(field('Virtual clusters, with').value).toBe('vc1');
      await acceptDialog();
      await same.done;
      expect(sent()).toEqual([]);
      server.on('PUT groups/vision', () => json({}));
      const { done } = await run(CommandIDs.editGroup, { group: 'vision' });
      set('Members', 'ann');
      set('Virtual clusters that members manage', '');
      await acceptDialog();
      await done;
      const extension = { acls: { manages: [] } };
      const data = { members: ['ann'], extension };
      expect(sent()).toEqual([['PUT groups/vision', { data, patch: true }]]);
    });

    it('let all users use everything, or what is named', async () => {
      await show(admin, [admin]);
      server.on('PUT groups/default', () => json({}));
      const closed = await run(CommandIDs.editGroup, { group: 'default' });
      expect(labels()).not.toContain('Description');
      expect(field('Virtual clusters, with').disabled).toBe(true);
      field('All virtual clusters').click();
      expect(field('Virtual clusters, with').disabled).toBe(false);
      await acceptDialog();
      await closed.done;
      const acls = { virtualClusters: [] };
      expect(sent()).toEqual([
        ['PUT groups/default', { data: { extension: { acls } }, patch: true }]
      ]);
      await show(admin, [admin], [group('default', ['vc1']), ADMINS]);
      server.on(
        'DELETE groups/default',
        () => new Response(null, { status: 204 })
      );
      const opened = await run(CommandIDs.editGroup, { group: 'default' });
      field('All virtual clusters').click();
      await acceptDialog();
      await opened.done;
      expect(sent()[1]).toEqual(['DELETE groups/default', null]);
    });

    it('are granted by managers what they manage, and nothing else', async () => {
      const manager = user('bob', { manages: ['vc2'] });
      await show(manager, [manager], [OPEN, ADMINS, VISION]);
      expect(host.textContent).not.toContain('Add Group');
      expect(button('Edit the group default')).toBeNull();
      expect(button('Remove the group vision')).toBeNull();
      const { done } = await run(CommandIDs.editGroup, { group: 'vision' });
      expect(labels()).toEqual(['Virtual clusters, with commas']);
      await dismissDialog();
      await done;
    });

    it('are removed after a question', async () => {
      await show(admin, [admin], [OPEN, ADMINS, VISION]);
      server.on(
        'DELETE groups/vision',
        () => new Response(null, { status: 204 })
      );
      const kept = await run(CommandIDs.removeGroup, { group: 'vision' });
      expect(document.querySelector('.jp-Dialog')!.textContent).toContain(
        'Its members lose'
      );
      await dismissDialog();
      await kept.done;
      expect(sent()).toEqual([]);
      const { done } = await run(CommandIDs.removeGroup, { group: 'vision' });
      await acceptDialog();
      await done;
      expect(sent()).toEqual([['DELETE groups/vision', null]]);
    });
  });
});
