import { AwayCode, PaiError } from '../src/problem';
import { FakeServer, FakeSocket, json } from './fake_server';
import { detail } from './wire';

/** The error that `work` rejects with. */
async function errorOf(work: Promise<unknown>): Promise<PaiError> {
  try {
    await work;
  } catch (reason) {
    expect(reason).toBeInstanceOf(PaiError);
    return reason as PaiError;
  }
  throw new Error('it did not fail');
}

describe('PaiClient', () => {
  let server: FakeServer;

  beforeEach(() => {
    server = new FakeServer();
  });

  it('submits the document byte for byte under the name given', async () => {
    server.on('POST jobs', () => json(detail(), 202));
    const text = '{ // 名称\n "jobName": "a" }';
    await server.client.submit(
      { text, filename: 'a b.json' },
      { name: 'second' }
    );
    const [request] = server.requests;
    expect(request.body).toBe(text);
    expect(request.query.get('name')).toBe('second');
    expect(request.query.get('filename')).toBe('a b.json');
  });

  it('asks for states, newest first, with the total', async () => {
    server.on('GET jobs', () => json({ totalCount: 0, data: [] }));
    await server.client.jobs({ states: ['WAITING', 'RUNNING'], limit: 7 });
    const { query } = server.requests[0];
    expect(Object.fromEntries(query)).toEqual({
      state: 'WAITING,RUNNING',
      limit: '7',
      order: 'submissionTime,DESC',
      withTotalCount: 'true'
    });
  });

  it('stops a job by its id', async () => {
    server.on('PUT jobs/ada~first/executionType', () => json({}, 202));
    await server.client.stop('ada~first');
    expect(JSON.parse(server.requests[0].body)).toEqual({ value: 'STOP' });
  });

  it('passes the backend’s own error on', async () => {
    const fault = {
      path: '$.image',
      message: 'image is missing',
      line: 3,
      column: 1,
      hint: 'Add it.'
    };
    server.on('POST jobs', () =>
      json(
        {
          code: 'InvalidProtocolError',
          message: 'The document has 1 error.',
          hint: '',
          requestId: 'r1',
          errors: [fault]
        },
        400
      )
    );
    const error = await errorOf(
      server.client.submit({ text: '{}', filename: '' })
    );
    expect(error.code).toBe('InvalidProtocolError');
    expect(error.status).toBe(400);
    expect(error.faults).toEqual([fault]);
  });

  it('says that the server half is missing when Jupyter does not know the path', async () => {
    server.on('GET jobs', () => new Response('<html>', { status: 404 }));
    const error = await errorOf(server.client.jobs({ limit: 1 }));
    expect(error.code).toBe(AwayCode.extension);
  });

  it('tells a missing job from a missing server half', async () => {
    server.on('GET jobs/nil', () =>
      json({ code: 'NoJobError', message: 'No job nil.' }, 404)
    );
    const error = await errorOf(server.client.job('nil'));
    expect(error.code).toBe('NoJobError');
  });

  it('says that the backend is away when a gateway has nobody behind it', async () => {
    server.on('GET jobs', () => new Response('bad gateway', { status: 502 }));
    const error = await errorOf(server.client.jobs({ limit: 1 }));
    expect(error.code).toBe(AwayCode.backend);
  });

  it('says that Jupyter is away when nothing answers', async () => {
    const error = await errorOf(server.client.jobs({ limit: 1 }));
    expect(error.code).toBe(AwayCode.jupyter);
  });

  it('reads the place of a log page from its headers', async () => {
    server.on(
      'GET jobs/a/logs',
      () =>
        new Response('tail', {
          headers: { 'X-Pai-Offset': '96', 'X-Pai-Next': '100' }
        })
    );
    const target = { role: 'w', index: 1, stream: 'stderr' } as const;
    const page = await server.client.log('a', target, -4, 4);
    expect([page.offset, page.next]).toEqual([96, 100]);
    expect(Object.fromEntries(server.requests[0].query)).toEqual({
      role: 'w',
      index: '1',
      stream: 'stderr',
      offset: '-4',
      limit: '4'
    });
  });

  describe('on the way to a service', () => {
    const ticket = {
      url: 'http://a--web.localhost:9000/.pai/signin?ticket=t',
      pathUrl: '/s/a--web/.pai/signin?ticket=t',
      expiresAt: '',
      proof: 'proof',
      isJupyter: false
    };
    const below =
      'http://127.0.0.1:8888/base/pai/s/a--web/.pai/signin?ticket=t';
    const html = { headers: { 'Content-Type': 'text/html; charset=utf-8' } };

    it('takes the own address that proves to be this backend', async () => {
      server.on('GET /.pai/reached', () => new Response('proof'));
      const way = await server.client.wayTo(ticket);
      expect(way).toEqual({ address: ticket.url });
    });

    it('takes the path when another backend answers there', async () => {
      server.on('GET /.pai/reached', () => new Response('of another'));
      server.on('GET s/a--web/', () => new Response('<a href="x">', html));
      const way = await server.client.wayTo(ticket);
      expect(way).toEqual({ address: below });
    });

    it('takes the path while the service does not answer yet', async () => {
      server.on('GET s/a--web/', () => new Response('', { status: 503 }));
      const way = await server.client.wayTo(ticket);
      expect(way).toEqual({ address: below });
    });

    const fromRoot = '<script src="/app.js"></script>';
    const local = 'http://a--web.localhost:41234/.pai/local?key=k';

    it('takes a port of the Jupyter server that this browser reaches', async () => {
      server.on('GET s/a--web/', () => new Response(fromRoot, html));
      server.on('POST local/a--web', () => json({ url: local, proof: 'p' }));
      const reached = ['of another', 'p'];
      server.on('GET /.pai/reached', () => new Response(reached.shift()));
      const way = await server.client.wayTo(ticket);
      expect(way).toEqual({ address: local });
    });

    it('closes one that it does not reach, and says what is missing', async () => {
      server.on('GET s/a--web/', () => new Response(fromRoot, html));
      server.on('POST local/a--web', () => json({ url: local, proof: 'p' }));
      const closed = jest.fn(() => new Response(null, { status: 204 }));
      server.on('DELETE local/a--web', closed);
      const way = await server.client.wayTo(ticket);
      expect(way).toEqual({ missing: { kind: 'port', port: '9000' } });
      expect(closed).toHaveBeenCalledTimes(1);
    });
  });

  it('opens streams below the WebSocket root with Jupyter’s token', () => {
    server.client.jobEvents('ada~first', 4);
    expect(FakeSocket.opened[0].url).toBe(
      'ws://127.0.0.1:8888/base/pai/api/v2/jobs/ada~first/events/stream?after=4&heartbeat=2&token=secret'
    );
  });
});
