import { ResumedStream } from '../src/stream';
import { FakeSocket } from './fake_server';
import { until } from './wire';

describe('ResumedStream', () => {
  let received: unknown[];
  let stream: ResumedStream;
  let completed: jest.Mock;

  beforeEach(() => {
    FakeSocket.opened = [];
    received = [];
    completed = jest.fn();
    stream = new ResumedStream({
      open: () =>
        new FakeSocket(`ws://x/${received.length}`) as unknown as WebSocket,
      receive: data => received.push(data),
      completed
    });
  });

  afterEach(() => {
    stream.dispose();
  });

  const socket = (place: number) => FakeSocket.opened[place];
  const opened = (count: number) => () => FakeSocket.opened.length === count;

  it('goes on from where it stopped when the connection breaks', async () => {
    await until(opened(1));
    socket(0).accept();
    socket(0).send('one');
    socket(0).end(1006);
    await until(opened(2));
    expect(socket(1).url).toBe('ws://x/1');
  });

  it('ends when the server says that all was sent', async () => {
    await until(opened(1));
    socket(0).accept();
    socket(0).end(1000);
    expect(completed).toHaveBeenCalledTimes(1);
    expect(stream.isDisposed).toBe(true);
  });

  it('receives nothing after it was disposed', async () => {
    await until(opened(1));
    socket(0).accept();
    stream.dispose();
    expect(socket(0).closed).toBe(true);
    socket(0).send('late');
    expect(received).toEqual([]);
    expect(completed).not.toHaveBeenCalled();
  });
});
