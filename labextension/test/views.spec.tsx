import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { exitText, gpuText, portLines } from '../src/detail/tasks';
import { JobListModel } from '../src/jobs/model';
import { JobList, rowAfterKey } from '../src/jobs/view';
import { PaiError } from '../src/request';
import { mimeTypeOf, placeOf } from '../src/submit/view';
import { duration, problemWords } from '../src/words';
import { FakeServer, json } from './fake_server';
import { page, summary, task } from './wire';

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
      message: ''
    };
    const done = task({ exit, ports: { http: [1, 2], ssh: [3] } });
    expect(gpuText(done)).toBe('TITANX 0');
    expect(gpuText(task({ gpus: [] }))).toBe('');
    expect(portLines(done)).toEqual(['http 1, 2', 'ssh 3']);
    expect(exitText(trans, done)).toBe('137 (signal 9)');
  });

  it('name the place of a fault', () => {
    const fault = { path: '$.a', message: '', line: 2, column: 5, hint: '' };
    expect(placeOf(trans, fault)).toBe('Line 2, column 5');
    expect(placeOf(trans, { ...fault, line: null })).toBe('$.a');
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
