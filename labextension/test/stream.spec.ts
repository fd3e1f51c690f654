import { ResumedStream } from '../src/stream';
import { FakeSocket } from './fake_server';
import { until } from './wire';

describe('ResumedStream', () => {
  let received: unknown[];
  let stream: ResumedStream;
  let completed: jest.Mock;
  let connected: jest.Mock;

  beforeEach(() => {
    FakeSocket.opened = [];
    received = [];
    completed = jest.fn();
    connected = jest.fn();
    stream = new ResumedStream({
      open: () =>
        new FakeSocket(`ws://x/${received.length}`) as unknown as WebSocket,
      receive: data => received.push(data),
      connected,
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
    socket(0).end(1000, 'complete');
    expect(completed).toHaveBeenCalledTimes(1);
    expect(stream.isDisposed).toBe(true);
  });

  it('goes on when a server closes it because its ping timed out', async () => {
    await until(opened(1));
    socket(0).accept();
    socket(0).end(1000, 'ping timed out');
    await until(opened(2));
    expect(completed).not.toHaveBeenCalled();
  });

  it('takes a heartbeat as a sign of life and as nothing else', async () => {
    await until(opened(1));
    socket(0).accept();
    socket(0).send('');
    expect(received).toEqual([]);
  });

  it('is broken when nothing is heard, whatever the connection says', async () => {
    await until(opened(1));
    socket(0).accept();
    const later = Date.now() + 9000;
    jest.spyOn(Date, 'now').mockReturnValue(later);
    await until(opened(2));
    jest.restoreAllMocks();
    expect(socket(0).closed).toBe(true);
    expect(connected.mock.calls).toEqual([[true], [false]]);
  });

  it('is in doubt after a short silence, and alive again when it is heard', async () => {
    await until(opened(1));
    socket(0).accept();
    const late = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 4500);
    await until(() => connected.mock.calls.length === 2);
    socket(0).send('');
    late.mockRestore();
    expect(connected.mock.calls).toEqual([[true], [false], [true]]);
    expect(FakeSocket.opened).toHaveLength(1);
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
