import { LogModel } from '../src/log/model';
import { FakeServer } from './fake_server';
import { until } from './wire';

const PATH = 'jobs/ada~first/logs';
const TARGET = { role: 'worker', index: 0, stream: 'all' } as const;

describe('LogModel', () => {
  let server: FakeServer;
  let model: LogModel;

  const tail = (text: string, offset: number) => {
    const bytes = new TextEncoder().encode(text);
    server.on(
      `GET ${PATH}`,
      () =>
        new Response(bytes, {
          headers: {
            'X-Pai-Offset': `${offset}`,
            'X-Pai-Next': `${offset + bytes.length}`
          }
        })
    );
  };
  const sockets = () => server.sockets(`${PATH}/stream`);
  const send = (bytes: Uint8Array) =>
    sockets().slice(-1)[0].send(bytes.slice().buffer);
  const say = (text: string) => send(new TextEncoder().encode(text));
  const follow = async () => {
    model.start();
    await until(() => sockets().length === 1);
    sockets()[0].accept();
  };

  beforeEach(() => {
    server = new FakeServer();
    model = new LogModel(server.client, 'ada~first', TARGET, 't1');
  });

  afterEach(() => {
    model.dispose();
  });

  it('shows the last part from a full line on, then what is added', async () => {
    tail('half a line\nwhole\n', 500);
    await follow();
    say('new\n');
    expect(model.state.text).toBe('whole\nnew\n');
    expect(model.state.cut).toBe(true);
    expect(sockets()[0].url).toContain('offset=518');
  });

  it('shows a short log whole', async () => {
    tail('first line\n', 0);
    await follow();
    expect(model.state.text).toBe('first line\n');
    expect(model.state.cut).toBe(false);
  });

  it('puts a character together that came in two messages', async () => {
    tail('', 0);
    await follow();
    const bytes = new TextEncoder().encode('名');
    send(bytes.slice(0, 1));
    send(bytes.slice(1));
    expect(model.state.text).toBe('名');
  });

  it('goes on at the byte where the connection broke', async () => {
    tail('ab', 0);
    await follow();
    say('名');
    sockets()[0].end(1006);
    expect(model.state.live).toBe(false);
    await until(() => sockets().length === 2);
    expect(sockets()[1].url).toContain('offset=5');
    expect(server.requests).toHaveLength(1);
  });

  it('says when there will be no more', async () => {
    tail('all', 0);
    await follow();
    sockets()[0].end(1000, 'complete');
    expect(model.state.complete).toBe(true);
  });

  it('forgets the beginning of a long log and says so', async () => {
    tail('', 0);
    await follow();
    const line = `${'x'.repeat(1023)}\n`;
    say(line.repeat(1024));
    expect(model.state.generation).toBe(0);
    say('end\n');
    expect(model.state.generation).toBe(1);
    expect(model.state.cut).toBe(true);
    expect(model.state.text.length).toBeLessThan(600 * 1024);
    expect(model.state.text.endsWith('x\nend\n')).toBe(true);
  });
});
