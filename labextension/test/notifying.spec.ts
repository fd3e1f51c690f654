import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { Notifier } from '../src/jobs/notifying';
import { FakeServer, json } from './fake_server';
import { detail } from './wire';

describe('a notification', () => {
  let server: FakeServer;
  let notifier: Notifier;
  let wanted: string[];
  let onDesktop: string[];
  const event = (type: string, payload: object = {}) =>
    notifier.hear({
      job: 'j1',
      seq: 1,
      at: '2026-11-21T10:00:00Z',
      type,
      payload: payload as Record<string, unknown>
    });
  const said = () =>
    Notification.manager.notifications.map(each => each.message).reverse();
  const RUNS = { state: 'RUNNING', phase: 'running' };

  beforeEach(() => {
    Notification.dismiss();
    server = new FakeServer();
    server.on('GET jobs/j1', () => json(detail()));
    server.on('GET cluster/use', () => json({ user: 'ada' }));
    wanted = ['start', 'end', 'failure', 'preemption', 'kept'];
    onDesktop = [];
    notifier = new Notifier({
      client: server.client,
      trans: nullTranslator.load('jupyter_pai'),
      wants: setting => wanted.includes(setting),
      open: () => undefined,
      desktop: words => onDesktop.push(words)
    });
  });

  it.each([
    ['job.state', RUNS, 'first runs.'],
    ['job.exit', { state: 'SUCCEEDED' }, 'first has ended.'],
    ['job.exit', { state: 'FAILED' }, 'first has failed: '],
    [
      'task.state',
      { exit: { reason: 'preempted' } },
      'first was preempted by another job.'
    ],
    ['task.kept', {}, 'first has failed and is kept for debugging.']
  ])(
    'of %s %j says what happened, where it is wanted',
    async (type, payload, words) => {
      await event(type, payload);
      expect(said()).toEqual([words]);
      expect(onDesktop).toEqual([]);
    }
  );

  it('is sent once an attempt, and again in the next', async () => {
    await event('job.state', RUNS);
    await event('job.state', RUNS);
    await event('job.retry');
    await event('job.state', RUNS);
    expect(said()).toHaveLength(2);
  });

  it('is left out where a setting or nothing asks for it, and of the jobs of others', async () => {
    wanted = [];
    await event('job.exit', { state: 'FAILED' });
    wanted = ['end', 'failure'];
    await event('job.state', { state: 'WAITING', phase: 'queued' });
    await event('task.state', { exit: null });
    server.on('GET jobs/j1', () => json(detail({ username: 'bob' })));
    await event('job.exit', { state: 'FAILED' });
    expect(said()).toEqual([]);
  });

  it('goes to the desktop, too, and outlives a backend that is away', async () => {
    wanted.push('desktop');
    server.on('GET cluster/use', () => new Response('', { status: 503 }));
    await event('job.state', RUNS);
    server.on('GET cluster/use', () => json({ user: 'ada' }));
    await event('job.exit', { state: 'SUCCEEDED' });
    expect(onDesktop).toEqual(['first has ended.']);
  });
});
