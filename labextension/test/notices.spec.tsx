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
import { addNotificationCommands } from '../src/notices/commands';
import { NotificationsModel } from '../src/notices/model';
import { Notifications } from '../src/notices/view';
import { CommandIDs } from '../src/tokens';
import type { INotification } from '../src/types';
import { FakeServer, Held, json } from './fake_server';

const trans = nullTranslator.load('jupyter_pai');
const HOOK = 'https://hooks.example.org/services/T0/not-for-others';
const USUAL = [
  'succeeded',
  'failed',
  'preempted',
  'kept',
  'idle',
  'gpus-idle',
  'budget'
];

function notification(change: Partial<INotification> = {}): INotification {
  return {
    id: 'n1',
    channel: 'slack',
    place: 'hooks.example.org',
    news: ['failed', 'succeeded'],
    waitedS: 3600,
    createdAt: '2026-11-28T09:00:00Z',
    triedAt: null,
    sentAt: null,
    trouble: '',
    waiting: 0,
    lost: 0,
    ...change
  };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) {
    await new Promise(resolve => setTimeout(resolve));
  }
}

describe('the page of notifications', () => {
  let server: FakeServer;
  let model: NotificationsModel;
  let commands: CommandRegistry;
  let host: HTMLElement;
  let root: Root;
  let rest: () => Promise<void>;

  const found = (...rows: INotification[]) =>
    server.on('GET notifications', () => json({ data: rows }));
  const render = () =>
    flushSync(() =>
      root.render(<Notifications {...{ model, commands, trans }} />)
    );
  const show = async (...rows: INotification[]) => {
    found(...rows);
    await model.refresh();
    render();
  };
  const dialog = () => document.querySelector<HTMLElement>('.jp-Dialog')!;
  const field = <T extends HTMLElement = HTMLInputElement>(label: string) =>
    [...dialog().querySelectorAll('label')]
      .find(each => each.textContent!.startsWith(label))!
      .querySelector<T>('input, select')!;
  const choose = (channel: string) => {
    const select = field<HTMLSelectElement>('Messages come by');
    select.value = channel;
    select.dispatchEvent(new Event('change', { bubbles: true }));
  };
  const type = (label: string, value: string) => {
    const input = field(label);
    input.value = value;
    input.dispatchEvent(new Event('input', { bubbles: true }));
  };
  const isAsked = (label: string) =>
    [...dialog().querySelectorAll('label')].some(
      each => !each.hidden && each.textContent!.startsWith(label)
    );
  const open = async () => {
    const done = commands.execute(CommandIDs.addNotification);
    await waitForDialog();
    return { done };
  };
  const sent = () =>
    server.requests
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path, body }) => [
        `${method} ${path}`,
        body ? (JSON.parse(body) as unknown) : null
      ]);
  const said = () =>
    Notification.manager.notifications.map(({ type, message }) => [
      type,
      message
    ]);

  beforeEach(() => {
    Notification.dismiss();
    server = new FakeServer();
    model = new NotificationsModel(server.client);
    commands = new CommandRegistry();
    rest = () => Promise.resolve();
    addNotificationCommands(commands, {
      client: server.client,
      model,
      trans,
      show: () => Promise.resolve(),
      rest: () => rest()
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

  it('shows where messages go, about what, and whether they arrive', async () => {
    await show(
      notification({ news: ['waited'], waitedS: 7200 }),
      notification({
        id: 'n2',
        channel: 'mail',
        place: 'ann@example.org',
        triedAt: '2026-11-28T10:00:00Z',
        trouble: 'the server refuses the address',
        waiting: 2,
        lost: 3
      }),
      notification({ id: 'n3', news: [], sentAt: '2026-11-28T10:00:00Z' })
    );
    const rows = [...host.querySelectorAll('tbody tr')].map(row =>
      [...row.children].map(cell => cell.textContent!)
    );
    expect(rows.map(row => row.slice(0, 3))).toEqual([
      [
        'hooks.example.org',
        'Slack',
        'Has started after a wait of 2 h 0 min or longer'
      ],
      ['ann@example.org', 'Mail', 'Succeeded, Failed'],
      ['hooks.example.org', 'Slack', 'What documents ask for']
    ]);
    expect(rows[0][3]).toBe('none yet');
    expect(rows[1][3]).toContain('did not arrive: the server refuses');
    expect(rows[2][3]).toContain(' – arrived');
    expect(rows[1].slice(4, 6)).toEqual(['2', '3']);
    const troubled = host.querySelectorAll('tr[data-troubled="true"]');
    expect(troubled).toHaveLength(1);
  });

  it('says that there are none, and why they cannot be read', async () => {
    await show();
    expect(host.textContent).toContain('No messages are sent yet.');
    server.on('GET notifications', () =>
      json({ code: 'X', message: 'a' }, 503)
    );
    await model.refresh();
    render();
    expect(host.querySelector('[role="alert"]')).not.toBeNull();
  });

  it('asks for what the channel wants', async () => {
    await show();
    const { done } = await open();
    expect(isAsked('Address (empty: that of your account)')).toBe(true);
    expect(isAsked('Secret')).toBe(false);
    choose('slack');
    expect(isAsked('URL of the incoming webhook')).toBe(true);
    expect(isAsked('Secret')).toBe(false);
    choose('dingtalk');
    expect(isAsked('URL of the custom robot')).toBe(true);
    expect(isAsked('Secret of the robot')).toBe(true);
    expect(field('Secret of the robot').type).toBe('password');
    choose('webhook');
    expect(isAsked('Secret that signs')).toBe(true);
    expect(isAsked('A long wait')).toBe(false);
    field('Has started after a long wait').click();
    expect(isAsked('A long wait')).toBe(true);
    await dismissDialog();
    await done;
    expect(sent()).toEqual([]);
  });

  it('adds one, and keeps neither its URL nor its secret', async () => {
    await show();
    const { done } = await open();
    choose('webhook');
    const url = field('URL');
    const secret = field('Secret');
    type('URL', HOOK);
    type('Secret', 's3cret');
    field('Has started after a long wait').click();
    type('A long wait', '90');
    field('Succeeded').checked = false;
    server.on('POST notifications', () => json(notification(), 201));
    found(notification());
    await acceptDialog();
    await done;
    const news = ['waited', ...USUAL.filter(each => each !== 'succeeded')];
    const body = { channel: 'webhook', to: HOOK, secret: 's3cret' };
    expect(sent()).toEqual([
      ['POST notifications', { ...body, news, waitedS: 5400 }]
    ]);
    expect(dialog()).toBeNull();
    expect([url.value, secret.value]).toEqual(['', '']);
    expect(JSON.stringify(model.state)).not.toMatch(/s3cret|not-for-others/);
    render();
    expect(host.querySelectorAll('tbody tr')).toHaveLength(1);
  });

  it('sends no secret that was typed for another channel', async () => {
    await show();
    const { done } = await open();
    choose('feishu');
    type('Secret', 's3cret');
    choose('slack');
    type('URL', HOOK);
    server.on('POST notifications', () => json(notification(), 201));
    await acceptDialog();
    await done;
    const [[, body]] = sent() as [string, { secret: string }][];
    expect(body.secret).toBe('');
  });

  it('sends nothing while what was typed cannot be right', async () => {
    await show();
    const { done } = await open();
    choose('slack');
    const accept = () =>
      dialog().querySelector<HTMLButtonElement>('.jp-mod-accept')!.click();
    accept();
    type('URL', 'ftp://x/y');
    accept();
    expect(sent()).toEqual([]);
    expect(dialog()).not.toBeNull();
    await dismissDialog();
    await done;
  });

  it('says what the backend refuses where it was typed, and keeps the rest', async () => {
    await show();
    const { done } = await open();
    choose('webhook');
    type('URL', 'https://ann@x/y');
    type('Secret', 's3cret');
    const message = 'to must be an http or https URL without a user.';
    const refuse = (body: object) =>
      server.on('POST notifications', () =>
        json({ code: 'InvalidParametersError', message, ...body }, 400)
      );
    refuse({ errors: [{ path: '$.to', message, hint: '' }] });
    const accept = async (says: string) => {
      dialog().querySelector<HTMLButtonElement>('.jp-mod-accept')!.click();
      await until(() => dialog().textContent!.includes(says));
    };
    await accept(message);
    const url = field('URL');
    expect(url.getAttribute('aria-invalid')).toBe('true');
    const about = url.getAttribute('aria-describedby')!;
    expect(document.getElementById(about)!.textContent).toBe(message);
    expect(document.activeElement).toBe(url);
    expect(field('Secret').value).toBe('s3cret');

    choose('mail');
    type('Address', 'ann@example.org');
    const none = 'This backend sends no mail.';
    refuse({ message: none, hint: 'Choose another channel.' });
    await accept(none);
    const alerts = dialog().querySelectorAll('[role="alert"]');
    expect([...alerts].map(each => each.textContent)).toEqual([
      `${none} Choose another channel.`
    ]);
    expect(url.hasAttribute('aria-invalid')).toBe(false);

    server.on('POST notifications', () => json(notification(), 201));
    await acceptDialog();
    await done;
    expect(sent()).toHaveLength(3);
    expect(said()).toEqual([]);
  });

  it('tells a refusal that comes after the dialog was closed', async () => {
    await show();
    const { done } = await open();
    const held = new Held();
    server.on('POST notifications', () => held.answer);
    await acceptDialog();
    await until(() => sent().length > 0);
    expect(dialog().getAttribute('aria-busy')).toBe('true');
    await acceptDialog();
    await dismissDialog();
    await done;
    expect(sent()).toHaveLength(1);
    held.release(json({ code: 'X', message: 'This backend is away.' }, 403));
    await until(() => said().length > 0);
    expect(said()).toEqual([['error', 'This backend is away.']]);
  });

  describe('a test', () => {
    const before = notification({ triedAt: '2026-11-28T10:00:00Z' });
    const later = { triedAt: '2026-11-28T11:00:00Z' };
    const test = () =>
      commands.execute(CommandIDs.testNotification, { notification: 'n1' });

    beforeEach(() => {
      server.on(
        'POST notifications/n1/test',
        () => new Response(null, { status: 202 })
      );
    });

    it('says that the message has arrived, once it has', async () => {
      // The page was read before a job's message was tried: that is not the test's.
      await show(notification());
      found(before);
      let looks = 0;
      rest = async () => {
        expect(said()).toEqual([
          [
            'in-progress',
            'A test message is on its way to hooks.example.org (Slack).'
          ]
        ]);
        render();
        expect(host.textContent).toContain('Testing…');
        await test(); // is on its way already
        if (++looks === 2) {
          found({ ...before, ...later, sentAt: later.triedAt });
        }
      };
      await test();
      expect(sent()).toEqual([['POST notifications/n1/test', null]]);
      expect(said()).toEqual([
        [
          'success',
          'The test message has arrived at hooks.example.org (Slack).'
        ]
      ]);
      render();
      expect(host.textContent).not.toContain('Testing…');
    });

    it('says why it has not', async () => {
      await show(before);
      rest = () => {
        found({ ...before, ...later, trouble: 'the host answers 404' });
        return Promise.resolve();
      };
      await test();
      expect(said()).toEqual([
        [
          'error',
          'The test message did not arrive at hooks.example.org (Slack): the host answers 404'
        ]
      ]);
    });

    it('gives up where nothing is sent', async () => {
      await show(before);
      await test();
      const [[type, message]] = said();
      expect(type).toBe('warning');
      expect(message).toContain('has not been sent yet');
    });

    it('tells what the backend refuses', async () => {
      await show(before);
      server.on('POST notifications/n1/test', () =>
        json({ code: 'NoNotificationError', message: 'You have none.' }, 404)
      );
      await test();
      expect(said()).toEqual([['error', 'You have none.']]);
      expect(model.state.tested.size).toBe(0);
    });
  });

  it('removes one after a question', async () => {
    await show(notification());
    server.on(
      'DELETE notifications/n1',
      () => new Response(null, { status: 204 })
    );
    const remove = async () => {
      const done = commands.execute(CommandIDs.removeNotification, {
        notification: 'n1'
      });
      await waitForDialog();
      return { done };
    };
    const kept = await remove();
    expect(dialog().textContent).toContain('Remove hooks.example.org (Slack)?');
    await dismissDialog();
    await kept.done;
    expect(sent()).toEqual([]);
    const removed = await remove();
    found();
    await acceptDialog();
    await removed.done;
    expect(sent()).toEqual([['DELETE notifications/n1', null]]);
    render();
    expect(host.querySelector('table')).toBeNull();
  });
});
