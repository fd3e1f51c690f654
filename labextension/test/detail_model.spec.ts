import { DetailModel } from '../src/detail/model';
import { FakeServer, Held, json } from './fake_server';
import { detail, task, until, why } from './wire';

describe('DetailModel', () => {
  let server: FakeServer;
  let model: DetailModel;

  const answer = (job = detail()) =>
    server.on('GET jobs/ada~first', () => json(job));
  const withTask = (change: Parameters<typeof task>[0]) =>
    detail({ taskRoles: [{ name: 'worker', taskStatuses: [task(change)] }] });

  beforeEach(() => {
    server = new FakeServer();
    server.on('GET jobs/ada~first/logs', () => new Response(''));
    answer();
    model = new DetailModel(server.client, 'ada~first');
  });

  afterEach(() => {
    model.dispose();
  });

  it('drops an answer that arrives after a later one', async () => {
    const answers = [new Held(), new Held()];
    const [early, late] = answers;
    server.on('GET jobs/ada~first', () => answers.shift()!.answer);
    const first = model.refresh();
    const second = model.refresh();
    await until(() => answers.length === 0);
    late.release(json(detail({ state: 'RUNNING', version: 2 })));
    await second;
    early.release(json(detail({ state: 'WAITING', version: 1 })));
    await first;
    expect(model.state.job?.version).toBe(2);
  });

  it('reads the job again when something happened to it', async () => {
    model.start();
    await until(() => server.sockets('jobs/ada~first/events').length === 1);
    const [socket] = server.sockets('jobs/ada~first/events');
    socket.accept();
    answer(detail({ state: 'STOPPING', version: 2 }));
    socket.send(JSON.stringify({ job: 'j1', seq: 3 }));
    await until(() => model.state.job?.version === 2);
    socket.end(1006);
    await until(() => server.sockets('jobs/ada~first/events').length === 2);
    expect(server.sockets('jobs/ada~first/events')[1].url).toContain('after=3');
  });

  it('asks why a job waits, and no longer when it has started', async () => {
    server.on('GET jobs/ada~first/why', () => json(why()));
    answer(detail({ state: 'WAITING', phase: 'queued' }));
    await model.refresh();
    expect(model.state.why?.waiting?.position).toBe(2);
    answer(detail({ state: 'RUNNING', phase: 'running' }));
    await model.refresh();
    expect(model.state.why).toBeNull();
  });

  it('shows the job all the same when nobody can say why it waits', async () => {
    server.on(
      'GET jobs/ada~first/why',
      () => new Response('', { status: 503 })
    );
    answer(detail({ state: 'WAITING', phase: 'queued' }));
    await model.refresh();
    expect(model.state.job?.state).toBe('WAITING');
    expect(model.state.problem).toBeNull();
    expect(model.state.why).toBeNull();
  });

  it('drops a reason that arrives after the job has started', async () => {
    const held = new Held();
    server.on('GET jobs/ada~first/why', () => held.answer);
    answer(detail({ state: 'WAITING', phase: 'queued' }));
    const first = model.refresh();
    await until(() => model.state.job?.phase === 'queued');
    answer(detail({ state: 'RUNNING', phase: 'running' }));
    await model.refresh();
    held.release(json(why()));
    await first;
    expect(model.state.why).toBeNull();
  });

  it('follows a job that runs again after its end', async () => {
    const sockets = () => server.sockets('jobs/ada~first/events');
    model.start();
    await until(() => sockets().length === 1);
    sockets()[0].accept();
    answer(detail({ state: 'FAILED' }));
    sockets()[0].end(1000, 'complete');
    await until(() => model.state.job?.state === 'FAILED');
    answer(detail({ state: 'WAITING', version: 3 }));
    model.start();
    await until(() => sockets().length === 2);
    expect(model.state.job?.state).toBe('WAITING');
  });

  it('opens no stream for a job that has ended', async () => {
    answer(detail({ state: 'SUCCEEDED' }));
    await model.refresh();
    expect(server.sockets('jobs/ada~first/events')).toHaveLength(0);
  });

  it('shows no log before the task has started', async () => {
    answer(withTask({ startedTime: null, state: 'WAITING' }));
    model.showTab('logs');
    await model.refresh();
    expect(model.state.log).toBeNull();
    answer();
    await model.refresh();
    expect(model.state.log?.target).toEqual({
      role: 'worker',
      index: 0,
      stream: 'all'
    });
  });

  it('keeps the log while the task is the same and changes it with a retry', async () => {
    model.showTab('logs');
    await model.refresh();
    const first = model.state.log;
    await model.refresh();
    expect(model.state.log).toBe(first);
    answer(withTask({ uid: 'j1-worker-0-1', attempt: 1 }));
    await model.refresh();
    expect(model.state.log).not.toBe(first);
    expect(first?.isDisposed).toBe(true);
  });

  it('changes the log with the output that is asked for', async () => {
    await model.refresh();
    model.showLog({ role: 'worker', index: 0, stream: 'stderr' });
    expect(model.state.log?.target.stream).toBe('stderr');
  });

  it('reads no log before it is looked at', async () => {
    await model.refresh();
    expect(model.state.log).toBeNull();
    expect(server.requests.map(({ path }) => path)).toEqual(['jobs/ada~first']);
  });

  it('shows the log of an earlier run, though the task waits again', async () => {
    const uid = 'j1-worker-0-1';
    answer(withTask({ uid, attempt: 1, startedTime: null, state: 'WAITING' }));
    await model.refresh();
    model.showLog({ role: 'worker', index: 0, stream: 'all', attempt: 0 });
    expect(model.state.log?.taskUid).toBe('j1-worker-0-0');
    await until(() =>
      server.requests.some(({ query }) => query.get('attempt') === '0')
    );
    model.showLog({ role: 'worker', index: 0, stream: 'all' });
    expect(model.state.log).toBeNull();
  });

  it('reads the history when it is looked at, and then only what is new', async () => {
    const event = (seq: number, type: string) => ({
      job: 'j1',
      seq,
      at: '2026-11-21T10:00:00Z',
      type,
      payload: {}
    });
    server.on('GET jobs/ada~first/job-attempts', () => json({ data: [] }));
    server.on('GET jobs/ada~first/events', ({ query }) =>
      json({
        data: [
          event(1, 'job.submitted'),
          event(2, 'task.state'),
          event(3, 'job.exit')
        ].filter(({ seq }) => seq > Number(query.get('after')))
      })
    );
    await model.refresh();
    model.showTab('history');
    await until(() => model.state.attempts !== null);
    model.showTab('history');
    await until(() =>
      server.requests.some(({ query }) => query.get('after') === '3')
    );
    expect(model.state.timeline.map(({ seq }) => seq)).toEqual([1, 3]);
  });

  it('tells why another document cannot be read, and keeps its own', async () => {
    server.on(
      'GET jobs/ada~first/config',
      () =>
        new Response('{"a": 1}', {
          headers: { 'Content-Type': 'application/json' }
        })
    );
    server.on('POST validate', () =>
      json({ valid: true, spec: { name: 'a' } })
    );
    server.on('GET jobs/none/config', () =>
      json({ code: 'NoJobError', message: 'There is no job none.' }, 404)
    );
    await model.refresh();
    model.showTab('document');
    await until(() => model.state.documents !== null);
    await model.compare('none');
    expect(model.state.problem?.message).toBe('There is no job none.');
    expect(model.state.other).toBeNull();
    expect(model.state.documents).toEqual({
      submitted: { text: '{"a": 1}', filename: 'job.json', isMasked: false },
      resolved: '{\n  "name": "a"\n}'
    });
  });
});
