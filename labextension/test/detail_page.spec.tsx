import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { Addresses } from '../src/detail/addresses';
import { diffLines, MAX_CHANGED } from '../src/detail/diff';
import { eventWords, History } from '../src/detail/history';
import { TaskTable } from '../src/detail/tasks';
import { verdictWords } from '../src/detail/overview';
import { WhyTab } from '../src/detail/why';
import { Tabs } from '../src/tabs';
import { rowsInSight } from '../src/windowed';
import { detail, task } from './wire';

const trans = nullTranslator.load('jupyter_pai');
const commands = new CommandRegistry();
const exit = {
  status: 137,
  code: null,
  signal: 9,
  reason: 'signalled',
  message: 'It was killed.',
  wording: null,
  phrase: 'Killed',
  remedy: 'Watch its memory.'
};

function shown(part: JSX.Element): HTMLElement {
  const host = document.createElement('div');
  document.body.append(host);
  flushSync(() => createRoot(host).render(part));
  return host;
}

describe('tabs', () => {
  it.each([
    ['ArrowRight', 'a'],
    ['ArrowLeft', 'b'],
    ['Home', 'a'],
    ['End', 'c']
  ])('lead with %s from the last of three to %s', (key, expected) => {
    const onSelect = jest.fn();
    const tabs = ['a', 'b', 'c'].map(id => ({ id, label: id }));
    const host = shown(
      <Tabs {...{ label: 'l', panel: 'p', tabs, selected: 'c', onSelect }} />
    );
    const [, , last] = [...host.querySelectorAll('button')];
    expect(last.tabIndex).toBe(0);
    expect(last.getAttribute('aria-selected')).toBe('true');
    last.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    expect(onSelect).toHaveBeenCalledWith(expected);
  });
});

describe('a windowed table', () => {
  it.each([
    [0, 340, 34, 10, [0, 10]],
    [0, 340, 34, 100_000, [0, 30]],
    [34 * 500, 340, 34, 1000, [490, 520]],
    [34 * 5000, 340, 34, 1000, [970, 1000]]
  ])('at %d of height %d with rows of %d shows of %d %j', (...args) => {
    const [top, height, row, count, expected] = args;
    expect(rowsInSight(top, height, row, count)).toEqual(expected);
  });

  it('renders some of a thousand tasks and says how many there are', () => {
    const tasks = Array.from({ length: 1000 }, (_, index) =>
      task({ uid: `t${index}`, index })
    );
    const onLog = jest.fn();
    const host = shown(
      <TaskTable {...{ job: 'ada~first', tasks, commands, trans, onLog }} />
    );
    const table = host.querySelector('table');
    expect(table?.getAttribute('aria-rowcount')).toBe('1001');
    expect(host.querySelectorAll('tbody tr').length).toBeLessThan(60);
    const [button] = [...host.querySelectorAll('button')];
    expect(button.getAttribute('aria-label')).toBe('Show the log of worker-0');
    button.click();
    expect(onLog).toHaveBeenCalledWith(tasks[0]);
  });
});

describe('the verdict', () => {
  const job = detail({
    state: 'SUCCEEDED',
    phase: 'ended',
    exit: { ...exit, cause: null, role: 'worker', index: 0 },
    taskRoles: [
      { name: 'worker', taskStatuses: [task({ state: 'FAILED', exit })] }
    ]
  });

  it('of a success whose only task was killed says so', () => {
    expect(verdictWords(trans, job)).toBe('1 of 1 tasks failed.');
    expect(verdictWords(trans, detail({ state: 'SUCCEEDED' }))).toBe('');
  });

  it('is explained with what can be done', () => {
    const host = shown(
      <WhyTab {...{ trans, job, why: null, onQueue: jest.fn() }} />
    );
    expect(host.textContent).toContain('Watch its memory.');
  });
});

describe('addresses', () => {
  it('are text, and can be opened until their task has ended', () => {
    const [service] = detail().services;
    const texts = (state: 'WAITING' | 'SUCCEEDED') => {
      const services = [{ ...service, label: 'web', state }];
      const job = detail({ services, sshCommand: 'ssh first@host' });
      return shown(<Addresses {...{ trans, commands, job }} />);
    };
    const waiting = texts('WAITING');
    expect(waiting.textContent).toContain('ssh first@host');
    expect(waiting.textContent).toContain(service.url);
    expect(waiting.querySelectorAll('[aria-label^="Open web"]')).toHaveLength(
      1
    );
    const over = texts('SUCCEEDED');
    expect(over.textContent).toContain(service.url);
    expect(over.querySelectorAll('[aria-label^="Open"]')).toHaveLength(0);
  });
});

describe('the history', () => {
  it('leads to the log of each run, with its exit and remedy', () => {
    const onLog = jest.fn();
    const runs = [task({ state: 'FAILED', exit, attempt: 0 })];
    const attempt = {
      number: 0,
      createdTime: '2026-11-21T10:00:00Z',
      completedTime: null,
      retryReason: '',
      retryReasonWording: null,
      runs
    };
    const host = shown(
      <History {...{ trans, attempts: [attempt], timeline: [], onLog }} />
    );
    expect(host.textContent).toContain('137 (signal 9)');
    expect(host.textContent).toContain('Watch its memory.');
    host.querySelector('button')?.click();
    expect(onLog).toHaveBeenCalledWith({
      role: 'worker',
      index: 0,
      attempt: 0,
      stream: 'all'
    });
  });

  it.each([
    ['job.submitted', { user: 'ada' }, 'Submitted by ada'],
    [
      'job.state',
      { state: 'WAITING', phase: 'queued', why: 'No GPU is free.' },
      'Waiting · queued · No GPU is free.'
    ],
    ['job.retry', { attempt: 1, reason: 'lost' }, 'Attempt 2 begins · lost'],
    ['job.unheard-of', {}, 'job.unheard-of']
  ])('words %s', (type, payload, expected) => {
    const event = { job: 'j1', seq: 1, at: '', type, payload };
    expect(eventWords(trans, event)).toBe(expected);
  });
});

describe('the difference of two texts', () => {
  const rebuilt = (before: string, after: string, mark: string) =>
    diffLines(before, after)
      ?.filter(line => line.mark === ' ' || line.mark === mark)
      .map(line => line.text)
      .join('\n');

  it.each([
    ['a\nb\nc', 'a\nx\nc'],
    ['', 'a\nb'],
    ['a\na\nb\na', 'b\na\na'],
    ['a\nb', 'a\nb']
  ])('of %j and %j leads from one to the other', (before, after) => {
    expect(rebuilt(before, after, '-')).toBe(before);
    expect(rebuilt(before, after, '+')).toBe(after);
  });

  it('is not made where it would take too long', () => {
    const long = (text: string) => `${text}\n`.repeat(MAX_CHANGED + 1);
    expect(diffLines(long('a'), long('b'))).toBeNull();
  });
});
