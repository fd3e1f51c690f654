import type { ServerConnection, Terminal } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { noticeText, TerminalConnection } from '../src/terminal/connection';

/** The server's end of a terminal's WebSocket. */
class Socket {
  constructor(readonly start: boolean) {}

  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
  readonly received: unknown[][] = [];
  closed = false;

  send(text: string): void {
    this.received.push(JSON.parse(text) as unknown[]);
  }

  close(): void {
    this.closed = true;
  }

  say(...message: unknown[]): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

const trans = nullTranslator.load('jupyter_pai');

function connected(start = true): {
  connection: TerminalConnection;
  sockets: Socket[];
  shown: string[];
} {
  const sockets: Socket[] = [];
  const shown: string[] = [];
  const connection = new TerminalConnection({
    name: 'worker-0 (1)',
    serverSettings: {} as ServerConnection.ISettings,
    trans,
    start,
    open: mayStart => {
      sockets.push(new Socket(mayStart));
      return sockets[sockets.length - 1] as unknown as WebSocket;
    },
    end: () => Promise.resolve()
  });
  connection.messageReceived.connect((_, message) => {
    expect(message.type).toBe('stdout');
    shown.push(String(message.content?.[0]));
  });
  return { connection, sockets, shown };
}

const stdin = (text: string): Terminal.IMessage => ({
  type: 'stdin',
  content: [text]
});
const size: Terminal.IMessage = { type: 'set_size', content: [30, 90, 1, 1] };

describe('a terminal in a task', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('sends the size and what was typed ahead when the shell is there', () => {
    const { connection, sockets } = connected();
    connection.send(stdin('early'));
    connection.send(size);
    expect(sockets[0].received).toEqual([]);
    sockets[0].say('setup', {});
    expect(connection.connectionStatus).toBe('connected');
    expect(sockets[0].received).toEqual([
      ['set_size', 30, 90, 1, 1],
      ['stdin', 'early']
    ]);
    connection.dispose();
  });

  it('connects again for ever, with its size, and begins no second shell', () => {
    const { connection, sockets, shown } = connected();
    connection.send(size);
    sockets[0].say('setup', {});
    sockets[0].say('stdout', 'hello');
    sockets[0].onclose?.();
    expect(shown[1]).toContain('Reconnecting');
    connection.send(stdin('into the void'));
    for (let tries = 0; tries < 20; tries += 1) {
      jest.advanceTimersByTime(10_000);
      sockets[sockets.length - 1].onclose?.();
    }
    expect(sockets.length).toBe(21);
    expect(shown.length).toBe(2);
    window.dispatchEvent(new Event('online'));
    const last = sockets[sockets.length - 1];
    expect(sockets.length).toBe(22);
    last.say('setup', {});
    expect(last.received).toEqual([['set_size', 30, 90, 1, 1]]);
    expect(sockets.map(socket => socket.start)).toEqual([
      true,
      ...new Array<boolean>(21).fill(false)
    ]);
    connection.dispose();
    expect(last.closed).toBe(true);
  });

  it('says how the shell ended, and stays away then', () => {
    const { connection, sockets, shown } = connected(false);
    expect(sockets[0].start).toBe(false);
    sockets[0].say('setup', {});
    sockets[0].say('pai', 'ended', { code: 3, signal: null, reason: '' });
    sockets[0].say('disconnect', 1);
    expect(shown[0]).toContain('exit code 3');
    expect(connection.hasEnded).toBe(true);
    window.dispatchEvent(new Event('online'));
    jest.advanceTimersByTime(60_000);
    expect(sockets.length).toBe(1);
    connection.dispose();
  });

  it('opens nothing any more when it is disposed', () => {
    const { connection, sockets } = connected();
    sockets[0].onclose?.();
    connection.dispose();
    window.dispatchEvent(new Event('online'));
    jest.advanceTimersByTime(60_000);
    expect(sockets.length).toBe(1);
  });

  it.each([
    ['ended', { code: null, signal: 9, reason: '' }, 'by signal 9'],
    ['ended', { code: null, signal: null, reason: 'Task gone.' }, 'Task gone.'],
    ['refused', { code: 'NoTerminalError', message: 'x' }, 'has ended'],
    ['refused', { code: 'NoJobError', message: 'No job.', hint: 'See.' }, '.'],
    ['lost', { message: 'x' }, 'to the task is lost']
  ])('has words for %s %j', (kind, notice, words) => {
    expect(noticeText(trans, kind, notice)).toContain(words);
  });
});
