import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import {
  exitHelp,
  exitText,
  gpuText,
  portLines,
  TaskTable
} from '../src/detail/tasks';
import { JobListModel } from '../src/jobs/model';
import { JobList, rowAfterKey } from '../src/jobs/view';
import { PaiError } from '../src/problem';
import { mimeTypeOf } from '../src/submit/twin';
import { placeOf } from '../src/submit/verdict';
import { CommandIDs } from '../src/tokens';
import type { ITask } from '../src/types';
import { duration, problemWords, timeText } from '../src/words';
import { FakeServer, json } from './fake_server';
import { fault, page, share, summary, task, until } from './wire';

const trans = nullTranslator.load('jupyter_pai');

describe('the job list', () => {
  let server: FakeServer;
  let model: JobListModel;
  let host: HTMLElement;

  const show = async () => {
    await model.refresh();
    const root = createRoot(host);
    const commands = new CommandRegistry();
    flushSync(() => root.render(<JobList {...{ model, commands, trans }} />));
  };

  beforeEach(() => {
    // jsdom does not scroll.
    Element.prototype.scrollIntoView = () => undefined;
    server = new FakeServer();
    model = new JobListModel({ client: server.client });
    host = document.createElement('div');
  });

  afterEach(() => {
    model.dispose();
  });

  it('is a list box of named options that the keyboard reaches', async () => {
    server.on('GET jobs', () => json(page('a', 'b')));
    model.select('b');
    await show();
    const list = host.querySelector('[role="listbox"]');
    expect(list?.getAttribute('tabindex')).toBe('0');
    expect(list?.getAttribute('aria-label')).toBe('Jobs');
    const rows = [...host.querySelectorAll('[role="option"]')];
    expect(rows.map(row => row.getAttribute('aria-selected'))).toEqual([
      'false',
      'true'
    ]);
    expect(list?.getAttribute('aria-activedescendant')).toBe(rows[1].id);
  });

  it('says why a job waits and that it has warnings', async () => {
    const job = summary({
      state: 'WAITING',
      why: 'No GPU is free.',
      warnings: 2
    });
    server.on('GET jobs', () => json({ totalCount: 1, data: [job] }));
    await show();
    expect(host.textContent).toContain('No GPU is free.');
    expect(host.textContent).toContain('2 warnings');
  });

  it('marks shared jobs and lists those of others, with who, until when and for what', async () => {
    server.on('GET jobs', () => json(page('a', 'b')));
    const ends = { only: ['sftp'], expiresAt: '2026-11-22T10:00:00Z' };
    const given = [share({ uid: 'a' }), share({ uid: 'a', user: 'carol' })];
    const theirs = share({
      job: 'dave~night',
      uid: 'n',
      alias: 'its',
      ...ends
    });
    server.on('GET shares', request =>
      json({ data: request.query.get('given') ? given : [theirs] })
    );
    const asked = jest.fn();
    await model.refresh();
    await until(() => model.state.shares.received.length === 1);
    const commands = new CommandRegistry();
    const describedBy = { args: { type: 'object' } };
    commands.addCommand(CommandIDs.connect, { describedBy, execute: asked });
    flushSync(() =>
      createRoot(host).render(<JobList {...{ model, commands, trans }} />)
    );
    const rows = [...host.querySelectorAll('[role="option"]')];
    expect(rows[0].textContent).toContain('shared with bob, carol');
    expect(rows[1].textContent).not.toContain('shared');
    const received = host.querySelector('[aria-label="Shared with you"]');
    expect(received?.textContent).toContain('dave~night');
    expect(received?.textContent).toContain('by dave · until ');
    expect(received?.textContent).toContain('allowed: sftp');
    received?.querySelector('button')?.click();
    expect(asked).toHaveBeenCalledWith({ job: 'its' });
  });

  it('shows what is announced, and no more when it has ended', async () => {
    server.on('GET jobs', () => json(page('a')));
    const notice = {
      text: 'Off on Friday.',
      by: 'root',
      at: '2026-11-22T10:00:00Z',
      until: null,
      noStartsFrom: null as string | null
    };
    const asked = () =>
      server.requests.filter(each => each.path === 'announcement').length;
    server.on('GET announcement', () => json({ announcement: notice }));
    await model.refresh();
    await until(() => model.state.announcement !== null);
    await show();
    const shown = host.querySelector('.jp-pai-JobList-notice')?.textContent;
    expect(shown).toBe('Off on Friday.Announced by root');
    notice.noStartsFrom = '2026-11-27T10:00:00Z';
    await model.refresh();
    await until(() => model.state.announcement?.noStartsFrom !== null);
    await show();
    const held = host.querySelector('.jp-pai-JobList-notice')?.textContent;
    expect(held).toMatch(/Off on Friday\.From .+ on no job starts/);
    server.on('GET announcement', () => json({}, 503));
    await model.refresh();
    await until(() => asked() === 4);
    expect(model.state.announcement?.text).toBe('Off on Friday.');
    server.on('GET announcement', () => json({ announcement: null }));
    await model.refresh();
    await until(() => model.state.announcement === null);
  });

  it('stands without marks where shares may not be read', async () => {
    server.on('GET jobs', () => json(page('a')));
    server.on('GET shares', () => json({ code: 'ForbiddenUserError' }, 403));
    await show();
    await until(
      () => server.requests.filter(each => each.path === 'shares').length === 2
    );
    expect(host.querySelectorAll('[role="option"]')).toHaveLength(1);
    expect(host.querySelectorAll('[role="alert"]')).toHaveLength(0);
  });

  it('gives one clear message when the server half is missing', async () => {
    server.on('GET jobs', () => new Response('', { status: 404 }));
    await show();
    const alerts = host.querySelectorAll('[role="alert"]');
    expect(alerts).toHaveLength(1);
    expect(alerts[0].textContent).toContain(
      'jupyter server extension enable jupyter_pai'
    );
    expect(host.textContent).not.toContain('No jobs yet.');
  });

  it('offers a first step when there are no jobs', async () => {
    server.on('GET jobs', () => json(page()));
    await show();
    expect(host.textContent).toContain('No jobs yet.');
    expect(host.querySelectorAll('button')).toHaveLength(2);
  });

  it.each([
    ['ArrowDown', 'b', 'c'],
    ['ArrowDown', 'c', 'c'],
    ['ArrowDown', null, 'a'],
    ['ArrowUp', 'a', 'a'],
    ['Home', 'c', 'a'],
    ['End', 'a', 'c'],
    ['x', 'a', null]
  ])('%s leads from %s to %s', async (key, selected, expected) => {
    server.on('GET jobs', () => json(page('a', 'b', 'c')));
    await model.refresh();
    model.select(selected);
    expect(rowAfterKey(model.state, key)).toBe(expected);
  });
});

describe('the table of tasks', () => {
  const kept = task({
    state: 'FAILED',
    phase: 'kept for debugging',
    keptUntil: '2026-11-28T10:00:00Z'
  });

  const show = (tasks: ITask[], execute = jest.fn()) => {
    const host = document.createElement('div');
    const commands = new CommandRegistry();
    const describedBy = { args: { type: 'object' } };
    commands.addCommand(CommandIDs.releaseJob, { describedBy, execute });
    const onLog = jest.fn();
    const props = { job: 'ada~first', tasks, commands, trans, onLog };
    flushSync(() => createRoot(host).render(<TaskTable {...props} />));
    return host;
  };

  it('shows until when a task is kept, and lets it be entered', () => {
    const text = show([kept]).textContent;
    expect(text).toContain(`kept until ${timeText(kept.keptUntil)}`);
    expect(text).toContain('Copy');
  });

  it('releases the task whose button is pressed', () => {
    const execute = jest.fn();
    const host = show(
      [kept, task({ uid: 'j1-worker-1-0', index: 1 })],
      execute
    );
    const buttons = [...host.querySelectorAll('[aria-label^="Release"]')];
    expect(buttons.map(button => button.getAttribute('aria-label'))).toEqual([
      'Release worker-0'
    ]);
    (buttons[0] as HTMLElement).click();
    expect(execute).toHaveBeenCalledWith({
      job: 'ada~first',
      task: 'worker-0'
    });
  });

  it('offers no release of what is not kept', () => {
    const over = task({ state: 'FAILED', phase: 'ended' });
    expect(show([over]).textContent).not.toContain('Release');
  });
});

describe('words', () => {
  it.each([
    [900, '1 s'],
    [61_000, '1 min 1 s'],
    [3_660_000, '1 h 1 min'],
    [90_000_000, '1 d 1 h']
  ])('%d ms last', (ms, expected) => {
    expect(duration(trans, ms)).toBe(expected);
  });

  it('let the backend speak for itself', () => {
    const problem = new PaiError(409, {
      code: 'ConflictJobError',
      message: 'You have a job a.',
      hint: 'Choose another name.'
    });
    expect(problemWords(trans, problem)).toEqual({
      what: 'You have a job a.',
      remedy: 'Choose another name.'
    });
  });

  it('name a task’s GPUs, ports and exit', () => {
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
    const done = task({ exit, ports: { http: [1, 2], ssh: [3] } });
    expect(gpuText(done)).toBe('TITANX 0');
    expect(gpuText(task({ gpus: [] }))).toBe('');
    expect(portLines(done)).toEqual(['http 1, 2', 'ssh 3']);
    expect(exitText(trans, done)).toBe('137 (signal 9)');
    expect(exitHelp(trans, done)).toBe('It was killed.\nWatch its memory.');
    expect(exitHelp(trans, task())).toBe('');
  });

  it('name the place of a fault', () => {
    const placed = fault({ path: '$.a', line: 2, column: 5 });
    expect(placeOf(trans, placed)).toBe('Line 2, column 5');
    expect(placeOf(trans, { ...placed, line: null })).toBe('$.a');
  });

  it.each([
    ['{"a": 1}', '', 'application/json'],
    ['// SCM\n{', '', 'application/json'],
    ['protocolVersion: 2', '', 'text/x-yaml'],
    ['%YAML 1.2\n---\nname: a', '', 'text/x-yaml'],
    ['# v2\nprotocolVersion: 2', 'job.txt', 'text/x-yaml'],
    ['{a: 1}', 'job.yaml', 'text/x-yaml'],
    ['', '', 'application/json']
  ])('colour %j of file %j as %s', (text, filename, expected) => {
    expect(mimeTypeOf(text, filename)).toBe(expected);
  });
});
