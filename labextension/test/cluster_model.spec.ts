import { ClusterModel } from '../src/cluster/model';
import { AwayCode } from '../src/problem';
import { FakeServer, Held, json } from './fake_server';
import { clusterUse, queue, until, virtualCluster } from './wire';

describe('ClusterModel', () => {
  let server: FakeServer;
  let model: ClusterModel;
  let unseen: boolean;

  const answer = (user: string) => json(clusterUse({ user }));
  /** How often the use of the cluster was asked for. */
  const asked = () =>
    server.requests.filter(({ path }) => path === 'cluster/use').length;

  beforeEach(() => {
    server = new FakeServer();
    server.on('GET cluster/use', () => answer('ada'));
    unseen = false;
    model = new ClusterModel({ client: server.client, rests: () => unseen });
  });

  afterEach(() => {
    model.dispose();
  });

  it('knows nothing before the first answer', async () => {
    expect(model.state).toEqual({
      use: null,
      orphans: [],
      reservations: { data: [], mayReserve: [] },
      live: false,
      problem: null
    });
    await model.refresh();
    expect(model.state.use?.user).toBe('ada');
  });

  it('drops an answer that arrives after a later one', async () => {
    const [early, late] = [new Held(), new Held()];
    const answers = [early, late];
    server.on('GET cluster/use', () => answers.shift()!.answer);
    const first = model.refresh();
    const second = model.refresh();
    await until(() => asked() === 2);
    late.release(answer('new'));
    await second;
    early.release(answer('old'));
    await first;
    expect(model.state.use?.user).toBe('new');
  });

  it('keeps the picture and names the problem when the backend goes away', async () => {
    await model.refresh();
    server.on('GET cluster/use', () => new Response('', { status: 503 }));
    await model.refresh();
    expect(model.state.use?.user).toBe('ada');
    expect(model.state.problem?.code).toBe(AwayCode.backend);
    server.on('GET cluster/use', () => answer('ada'));
    await model.refresh();
    expect(model.state.problem).toBeNull();
  });

  it('reads again once for a burst of events, and goes on where it was', async () => {
    model.start();
    await until(() => server.sockets('events/stream').length === 1);
    const [socket] = server.sockets('events/stream');
    socket.accept();
    expect(model.state.live).toBe(true);
    await until(() => asked() === 2);
    for (let position = 1; position <= 20; position++) {
      socket.send(JSON.stringify({ position, event: { job: 'a' } }));
    }
    await until(() => asked() === 3);
    socket.end(1006);
    expect(model.state.live).toBe(false);
    await until(() => server.sockets('events/stream').length === 2);
    expect(server.sockets('events/stream')[1].url).toContain('position=20');
    expect(asked()).toBe(3);
  });

  it('asks for nothing while nobody looks', async () => {
    model.start();
    await until(() => server.sockets('events/stream').length === 1);
    const [socket] = server.sockets('events/stream');
    socket.accept();
    await until(() => asked() === 2);
    unseen = true;
    socket.send(JSON.stringify({ position: 1, event: { job: 'a' } }));
    unseen = false;
    socket.send(JSON.stringify({ position: 2, event: { job: 'a' } }));
    await until(() => asked() === 3);
    unseen = true;
    for (let position = 3; position <= 20; position++) {
      socket.send(JSON.stringify({ position, event: { job: 'a' } }));
    }
    // Longer than a burst is collected: a request would have been made.
    await new Promise(resolve => setTimeout(resolve, 600));
    expect(asked()).toBe(3);
  });

  it('finds a waiting job in whichever virtual cluster it waits', async () => {
    const virtualClusters = [
      virtualCluster({ queue: queue('a') }),
      virtualCluster({ name: 'speech', queue: queue('b', 'c') })
    ];
    server.on('GET cluster/use', () => json(clusterUse({ virtualClusters })));
    await model.refresh();
    expect(model.waiting('c')?.position).toBe(2);
    expect(model.waiting('ada~b')?.uid).toBe('b');
    expect(model.waiting('gone')).toBeNull();
  });

  it('asks no more after its end', async () => {
    model.start();
    await until(() => server.sockets('events/stream').length === 1);
    model.dispose();
    expect(server.sockets('events/stream')[0].closed).toBe(true);
    const before = asked();
    await model.refresh();
    expect(asked()).toBe(before + 1);
    expect(model.state.use?.user).toBe('ada');
  });
});
