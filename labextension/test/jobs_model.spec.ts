import { inPlace, JobListModel } from '../src/jobs/model';
import { AwayCode } from '../src/problem';
import type { IRequest } from './fake_server';
import { FakeServer, Held, json } from './fake_server';
import { page, summary, until } from './wire';

describe('JobListModel', () => {
  let server: FakeServer;
  let model: JobListModel;

  beforeEach(() => {
    server = new FakeServer();
    server.on('GET jobs', () => json(page('a')));
    model = new JobListModel({ client: server.client, standby: 'never' });
  });

  afterEach(() => {
    model.dispose();
  });

  /** Whether a request is for the rows themselves, not for those on nodes or a number. */
  const isList = ({ path, query }: IRequest) =>
    path === 'jobs' &&
    query.get('state') !== 'RUNNING,STOPPING' &&
    query.get('limit') !== '0';
  const asked = () => server.requests.filter(isList);
  const names = () => model.state.jobs.map(job => job.name);

  it('drops an answer that arrives after a later one', async () => {
    const early = new Held();
    const late = new Held();
    const answers = [early, late];
    server.on('GET jobs', request =>
      isList(request) ? answers.shift()!.answer : json(page())
    );
    const first = model.refresh();
    const second = model.refresh();
    await until(() => asked().length === 2);
    late.release(json(page('new')));
    await second;
    early.release(json(page('old')));
    await first;
    expect(names()).toEqual(['new']);
  });

  it('drops an answer to a question that is no longer asked', async () => {
    const unfiltered = new Held();
    server.on('GET jobs', request =>
      request.query.get('keyword') ? json(page('match')) : unfiltered.answer
    );
    const first = model.refresh();
    model.setKeyword('ma');
    await until(() => names().length === 1);
    unfiltered.release(json(page('match', 'other')));
    await first;
    expect(names()).toEqual(['match']);
  });

  it('keeps the list and names the problem when the backend goes away', async () => {
    await model.refresh();
    server.on('GET jobs', () => new Response('', { status: 503 }));
    await model.refresh();
    expect(names()).toEqual(['a']);
    expect(model.state.problem?.code).toBe(AwayCode.backend);
    server.on('GET jobs', () => json(page('a', 'b')));
    await model.refresh();
    expect(names()).toEqual(['a', 'b']);
    expect(model.state.problem).toBeNull();
  });

  it('leaves a job that ends where it ran, until it is asked for by hand', () => {
    const [old, middle, newest] = ['1', '2', '3'].map(uid =>
      summary({ uid, submissionTime: `2026-01-0${uid}T00:00:00Z` })
    );
    const at = inPlace([middle, old], [newest, middle, old], new Set());
    expect(at.jobs).toEqual([middle, old, newest]);
    const ended = inPlace([old], [newest, middle, old], at.held);
    expect(ended.jobs).toEqual([middle, old, newest]);
    const later = inPlace([newest, old], [newest, middle, old], ended.held);
    expect(later.jobs).toEqual([newest, middle, old]);
    const asked = inPlace([old], [newest, middle, old], new Set());
    expect(asked.jobs).toEqual([old, newest, middle]);
  });

  it('has what runs before what waits, and both their numbers', async () => {
    server.on('GET jobs', request => {
      const state = request.query.get('state');
      const total = state === 'WAITING' ? { totalCount: 2000 } : {};
      const rows = state === 'RUNNING,STOPPING' ? ['old'] : ['new', 'newer'];
      return json({ ...(page(...rows) as object), ...total });
    });
    await model.refresh();
    expect(names()).toEqual(['old', 'new', 'newer']);
    expect([model.state.running, model.state.waiting]).toEqual([1, 2000]);
  });

  it('replaces its state and never changes it', async () => {
    const before = model.state;
    const seen: unknown[] = [];
    model.changed.connect(() => seen.push(model.state));
    await model.refresh();
    expect(before.jobs).toEqual([]);
    expect(seen).toHaveLength(1);
    expect(seen[0]).not.toBe(before);
  });

  it('asks only for jobs that may change when they alone are wanted', async () => {
    model.setScope('active');
    await until(() => asked().length === 1);
    expect(asked()[0].query.get('state')).toBe('WAITING,RUNNING,STOPPING');
  });

  it('knows the selected job only while it is in the list', async () => {
    await model.refresh();
    model.select('a');
    expect(model.selectedJob?.id).toBe('ada~a');
    model.select('gone');
    expect(model.selectedJob).toBeNull();
  });

  it('tells of a job that is deleted and reads the list without it', async () => {
    const deleted: string[] = [];
    model.deleted.connect((_, uid) => deleted.push(uid));
    model.start();
    await until(() => server.sockets('events/stream').length === 1);
    const [socket] = server.sockets('events/stream');
    socket.accept();
    await until(() => names().length === 1);
    server.on('GET jobs', () => json(page()));
    for (const [position, type] of ['job.exit', 'job.deleted'].entries()) {
      socket.send(JSON.stringify({ position, event: { job: 'j1', type } }));
    }
    await until(() => names().length === 0);
    expect(deleted).toEqual(['j1']);
  });

  it('tells of a job that is restarted', async () => {
    const restarted: string[] = [];
    model.restarted.connect((_, uid) => restarted.push(uid));
    model.start();
    await until(() => server.sockets('events/stream').length === 1);
    const [socket] = server.sockets('events/stream');
    socket.accept();
    for (const type of ['job.exit', 'job.restart-requested']) {
      socket.send(JSON.stringify({ position: 1, event: { job: 'j1', type } }));
    }
    expect(restarted).toEqual(['j1']);
  });

  it('answers a burst of events with one request', async () => {
    model.start();
    await until(() => server.sockets('events/stream').length === 1);
    const [socket] = server.sockets('events/stream');
    socket.accept();
    expect(model.state.live).toBe(true);
    await until(() => asked().length === 2);
    for (let position = 1; position <= 20; position++) {
      socket.send(JSON.stringify({ position, event: { job: 'a' } }));
    }
    await until(() => asked().length === 3);
    expect(asked()).toHaveLength(3);
    const shares = server.requests.filter(each => each.path === 'shares');
    expect(shares).toHaveLength(2);
  });

  it('opens no stream before the backend has answered', async () => {
    server.on('GET jobs', () => new Response('', { status: 404 }));
    model.start();
    await until(() => model.state.problem !== null);
    expect(server.sockets('')).toHaveLength(0);
  });
});
