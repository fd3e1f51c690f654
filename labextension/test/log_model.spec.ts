import { LogModel } from '../src/log/model';
import { LineStamper, LogTimes, timeWord } from '../src/log/times';
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
    // One for the end of the log, and one that would tell why the socket broke.
    const limits = server.requests.map(({ query }) => query.get('limit'));
    expect(limits).toEqual(['262144', '0']);
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
    const { generation } = model.state;
    say('end\n');
    expect(model.state.generation).toBe(generation + 1);
    expect(model.state.cut).toBe(true);
    expect(model.state.text.length).toBeLessThan(600 * 1024);
    expect(model.state.text.endsWith('x\nend\n')).toBe(true);
  });

  describe('with times', () => {
    const at = (offset: number, minute: string) => ({
      offset,
      at: `2026-11-29T12:${minute}:00Z`
    });
    const asked = () =>
      server.requests
        .filter(({ path }) => path === `${PATH}/times`)
        .map(({ query }) => [query.get('offset'), query.get('limit')]);
    const shown = () =>
      new LineStamper(model.times, model.state.start).stamped(model.state.text);
    const word = (minute: string) => timeWord(at(0, minute).at);

    it('asks for those of what is shown, and has what comes told', async () => {
      server.on(`GET ${PATH}/times`, () =>
        Response.json({ times: [at(500, '01'), at(512, '02')] })
      );
      tail('half a line\nwhole\n', 500);
      await follow();
      expect(asked()).toEqual([]);
      const restarted = model.showTimes(true);
      await until(() => sockets().length === 2);
      await restarted;
      sockets()[1].accept();
      expect(asked()).toEqual([['512', '6']]);
      expect(sockets()[1].url).toContain('offset=518');
      expect(sockets()[1].url).toContain('timestamps=true');
      sockets()[1].send(JSON.stringify({ times: [at(518, '03')] }));
      say('new\n');
      expect(shown()).toBe(`${word('02')}whole\n${word('03')}new\n`);
      await model.showTimes(false);
      await until(() => sockets().length === 3);
      expect(sockets()[2].url).not.toContain('timestamps');
    });

    it('asks for those of what is read when they were shown before', async () => {
      model.dispose();
      model = new LogModel(server.client, 'ada~first', TARGET, 't2', true);
      server.on(`GET ${PATH}/times`, () =>
        Response.json({ times: [at(0, '01')] })
      );
      tail('one\n', 0);
      await follow();
      expect(asked()).toEqual([['0', '4']]);
      expect(shown()).toBe(`${word('01')}one\n`);
    });

    it('says why they are missing, and shows the lines', async () => {
      server.on(`GET ${PATH}/times`, () => new Response('', { status: 503 }));
      tail('one\n', 0);
      await follow();
      await model.showTimes(true);
      expect(model.state.problem).not.toBeNull();
      expect(model.state.text).toBe('one\n');
    });
  });

  describe('of a long output', () => {
    const lines = Array.from(
      { length: 120_000 },
      (_, number) => `第${String(number).padStart(6, '0')}行 ${'·'.repeat(7)}\n`
    );
    const all = new TextEncoder().encode(lines.join(''));
    const lineBytes = all.length / lines.length;

    const serve = (oldest = 0) =>
      server.on(`GET ${PATH}`, ({ query }) => {
        const asked = Number(query.get('offset'));
        const first = Math.max(oldest, asked < 0 ? all.length + asked : asked);
        const bytes = all.slice(first, first + Number(query.get('limit')));
        const headers = {
          'X-Pai-Offset': `${first}`,
          'X-Pai-Next': `${first + bytes.length}`
        };
        return new Response(bytes, { headers });
      });
    const first = () =>
      lines.indexOf(`${model.state.text.split('\n', 1)[0]}\n`);
    const whole = () =>
      lines
        .slice(first(), first() + model.state.text.length / lines[0].length)
        .join('') === model.state.text;

    it('shows earlier parts line by line, back to the first, with little in memory', async () => {
      serve();
      await follow();
      const steps = [first()];
      while (model.state.cut) {
        await model.showEarlier();
        steps.push(first());
        expect(whole()).toBe(true);
        expect(model.state.text.length).toBeLessThan(1.3 * 1024 * 1024);
      }
      expect(steps.slice(-1)).toEqual([0]);
      expect(steps).toEqual([...steps].sort((a, b) => b - a));
      expect(model.state.atEnd).toBe(false);
      while (!model.state.atEnd) {
        await model.showLater();
        expect(model.state.atEnd || whole()).toBe(true);
      }
      await until(() => sockets().length === 2);
      expect(model.state.text.endsWith(lines[119_999])).toBe(true);
    });

    it('ends where rotation has taken the beginning', async () => {
      serve(lineBytes * 112_000);
      await follow();
      await model.showEarlier();
      await model.showEarlier();
      expect(model.state.cut).toBe(false);
      expect(whole()).toBe(true);
      expect(first()).toBe(112_000);
    });

    it('goes to a line that was found, and says which it is', async () => {
      serve();
      await follow();
      await model.goTo(lineBytes * 30_000);
      const shown = model.state.text.split('\n');
      expect(`${shown[model.state.line ?? -1]}\n`).toBe(lines[30_000]);
      expect(model.state.atEnd).toBe(false);
      expect(whole()).toBe(true);
    });

    it('keeps what it shows when another part cannot be read', async () => {
      serve();
      await follow();
      const { text } = model.state;
      server.on(`GET ${PATH}`, () => new Response('', { status: 503 }));
      await model.showEarlier();
      expect(model.state.text).toBe(text);
      expect(model.state.problem?.code).toBe('UnavailableError');
    });
  });

  describe('a search', () => {
    const answers = (...parts: object[]) =>
      server.on(
        `GET ${PATH}/search`,
        () => new Response(JSON.stringify(parts.shift()))
      );

    it('goes on part by part until the end', async () => {
      tail('', 0);
      await follow();
      answers(
        { matches: [{ offset: 3, text: 'a' }], next: 100, complete: false },
        { matches: [{ offset: 103, text: 'b' }], next: 150, complete: true }
      );
      await model.search('a|b', true);
      expect(model.state.search?.matches.map(each => each.offset)).toEqual([
        3, 103
      ]);
      const asked = server.requests.slice(-2).map(({ query }) => query);
      expect(asked.map(query => query.get('offset'))).toEqual(['0', '100']);
      expect(asked[0].get('pattern')).toBe('a|b');
      expect(asked[0].get('ignoreCase')).toBe('true');
    });

    it('gives way to a later one, and tells why one is refused', async () => {
      const refusal = { code: 'InvalidParametersError', message: 'No.' };
      server.on(`GET ${PATH}/search`, ({ query }) =>
        query.get('pattern') === '('
          ? new Response(JSON.stringify(refusal), { status: 400 })
          : new Response(
              JSON.stringify({ matches: [], next: 8, complete: false })
            )
      );
      const endless = model.search('a', false);
      await model.search('(', false);
      await endless;
      expect(model.state.search?.pattern).toBe('(');
      expect(model.state.search?.problem?.message).toBe('No.');
      await model.search('', false);
      expect(model.state.search).toBeNull();
    });
  });
});

describe('LineStamper', () => {
  const times = new LogTimes();
  times.learn([{ offset: 0, at: '2026-11-29T12:00:00Z' }]);
  const word = timeWord('2026-11-29T12:00:00Z');
  const later = timeWord('2026-11-29T13:00:00Z');

  it.each([
    ['one\ntwo', `${word}one\n${word}two`],
    ['one\r\ntwo\r\n', `${word}one\r\n${word}two\r\n`],
    ['10%\r20%\r\n', `${word}10%\r${word}20%\r\n`],
    ['\n\n', `${word}\n${word}\n`]
  ])('stamps %j, however it is cut', (text, stamped) => {
    for (let cut = 0; cut <= text.length; cut++) {
      const stamper = new LineStamper(times, 0);
      const shown =
        stamper.stamped(text.slice(0, cut)) + stamper.stamped(text.slice(cut));
      expect(shown).toBe(stamped);
    }
  });

  it('counts bytes, and leaves room for what is not known', () => {
    const known = new LogTimes();
    known.learn([{ offset: 7, at: '2026-11-29T13:00:00Z' }]);
    expect(new LineStamper(known, 0).stamped('名字\n下一\n')).toBe(
      `${' '.repeat(later.length)}名字\n${later}下一\n`
    );
  });
});
