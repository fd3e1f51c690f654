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
import { PeopleModel } from '../src/people/model';
import { People } from '../src/people/view';
import { CommandIDs } from '../src/tokens';
import type { IHoldings, IUser } from '../src/types';
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

describe('the page of users', () => {
  let server: FakeServer;
  let model: PeopleModel;
  let commands: CommandRegistry;
  let host: HTMLElement;
  let root: Root;

  const show = async (me: IUser, users: readonly IUser[]) => {
    server.on('GET users/me', () => json(me));
    server.on('GET users', () => json(users));
    await model.refresh();
    const props = { model, commands, trans };
    flushSync(() => root.render(<People {...props} />));
  };
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
      .querySelector('input')!;
  const run = async (
    id: string,
    args: { user?: string; disabled?: boolean }
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
    addPeopleCommands(commands, {
      client: server.client,
      model,
      trans,
      show: () => Promise.resolve()
    });
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
    const rows = [...host.querySelectorAll('tbody tr')].map(row =>
      [...row.children].slice(0, 6).map(cell => cell.textContent)
    );
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
    await waitForDialog();
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
});
