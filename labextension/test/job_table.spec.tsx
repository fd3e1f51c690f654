import { Notification } from '@jupyterlab/apputils';
import { acceptDialog, waitForDialog } from '@jupyterlab/testing';
import type { IStateDB } from '@jupyterlab/statedb';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { addChangeJobs } from '../src/jobs/many';
import { JobListModel } from '../src/jobs/model';
import { JobTable, waited } from '../src/jobs/table';
import { FIRST_QUERY, JobTableModel, sinceOf } from '../src/jobs/table_model';
import { numbersText } from '../src/jobs/table_plugin';
import { SavedViews, viewsOf } from '../src/jobs/views';
import { CommandIDs } from '../src/tokens';
import { FakeServer, Held, json } from './fake_server';
import { clusterUse, node, page, summary, until } from './wire';

const trans = nullTranslator.load('jupyter_pai');
const TOTAL = 100_000;

describe('the table of all jobs', () => {
  let server: FakeServer;
  let model: JobTableModel;
  let commands: CommandRegistry;

  beforeEach(() => {
    server = new FakeServer();
    server.on('GET jobs', ({ query }) => {
      const offset = Number(query.get('offset') ?? 0);
      const limit = Number(query.get('limit'));
      const names = Array.from({ length: limit }, (_, at) => `j${offset + at}`);
      return json({ ...(page(...names) as object), totalCount: TOTAL });
    });
    model = new JobTableModel(server.client);
    commands = new CommandRegistry();
  });

  afterEach(() => {
    model.dispose();
  });

  const shown = () => {
    const host = document.createElement('div');
    const views = new SavedViews(null);
    const props = { model, views, commands, trans };
    flushSync(() => createRoot(host).render(<JobTable {...props} />));
    return host;
  };

  it('reads the rows that are looked at, and holds no others', async () => {
    await model.ask({});
    expect(model.state.total).toBe(TOTAL);
    model.look(50_030, 50_070);
    await until(() => model.state.rows.has(50_069));
    expect(model.state.rows.get(50_069)?.name).toBe('j50069');
    expect(model.state.rows.size).toBe(100);
    const requests = server.requests.length;
    model.look(50_040, 50_080);
    expect(server.requests).toHaveLength(requests);
  });

  it('asks for the days that are chosen, from a midnight on', async () => {
    await model.ask({ days: 7 });
    const { query } = server.requests[server.requests.length - 1];
    const since = new Date(query.get('submittedSince') ?? '');
    expect([since.getHours(), since.getMinutes()]).toEqual([0, 0]);
    expect(query.has('days')).toBe(false);
    const now = new Date(2026, 10, 3, 15);
    expect(sinceOf(1, now)).toBe(new Date(2026, 10, 3).toISOString());
    expect(sinceOf(7, now)).toBe(new Date(2026, 9, 28).toISOString());
    expect(sinceOf(0, now)).toBeUndefined();
  });

  it('keeps queries under names, and takes no others for them', async () => {
    let kept: unknown = undefined;
    const state = {
      fetch: () => Promise.resolve(kept),
      save: (_: string, value: unknown) => {
        kept = JSON.parse(JSON.stringify(value));
        return Promise.resolve();
      }
    } as unknown as IStateDB;
    const views = new SavedViews(state);
    await views.load();
    await views.save('mine', { ...model.state.query, username: 'ada' });
    await views.save('failed', { ...model.state.query, states: ['FAILED'] });
    await views.save('mine', { ...model.state.query, username: 'bob' });
    const again = new SavedViews(state);
    await again.load();
    expect(again.all.map(({ name }) => name)).toEqual(['failed', 'mine']);
    expect(again.all[1].query.username).toBe('bob');
    await again.remove('mine');
    expect(viewsOf(kept)).toHaveLength(1);
    expect(viewsOf({ views: [{ name: 5 }, {}, { name: 'x' }] })).toEqual([]);
    expect(viewsOf('other')).toEqual([]);
  });

  it('asks as its filters and heads say', async () => {
    await model.ask({
      states: ['RUNNING'],
      username: 'ada',
      vc: 'v',
      tag: 't'
    });
    await model.orderBy('name');
    await model.orderBy('name');
    const query = server.requests[server.requests.length - 1].query;
    expect(Object.fromEntries(query)).toMatchObject({
      state: 'RUNNING',
      username: 'ada',
      vc: 'v',
      tagsContain: 't',
      order: 'name,DESC',
      limit: '100'
    });
  });

  it('filters by a GPU type that the cluster or a row has, and shows types', async () => {
    server.on('GET cluster/use', () =>
      json(clusterUse({ nodes: [node({ gpuTypes: ['V100', 'A100'] })] }))
    );
    server.on('GET jobs', () =>
      json({
        totalCount: 1,
        data: [summary({ gpuTypes: ['A100', 'K80'] })]
      })
    );
    await model.ask({});
    await model.loadGpuTypes();
    const host = shown();
    const select = host.querySelector<HTMLSelectElement>(
      'select[aria-label="GPU type"]'
    );
    const offered = () =>
      [...(select?.options ?? [])].map(option => option.textContent);
    expect(offered()).toEqual(
      expect.arrayContaining(['All GPU types', 'A100', 'K80', 'V100'])
    );
    const row = host.querySelector('tbody tr[data-job]');
    expect(row?.textContent).toContain('A100, K80');
    const heads = [...host.querySelectorAll('thead th')];
    expect(heads.map(head => head.textContent)).toContain('GPU type');
    if (select) {
      select.value = 'K80';
      select.dispatchEvent(new Event('change', { bubbles: true }));
    }
    await until(() => model.state.query.gpuType === 'K80');
    const asked = () => server.requests[server.requests.length - 1];
    await until(() => asked().query.get('gpuType') === 'K80');
    await model.ask({ gpuType: '' });
    expect(asked().query.has('gpuType')).toBe(false);
  });

  it('offers the GPU type of a view that no node has, without an answer about the cluster', async () => {
    server.on('GET cluster/use', () => json({}, 503));
    await model.loadGpuTypes();
    await model.ask({ gpuType: 'P100' });
    const chosen = shown().querySelector<HTMLSelectElement>(
      'select[aria-label="GPU type"]'
    );
    expect(chosen?.value).toBe('P100');
    expect(model.state.problem).toBeNull();
  });

  it('takes a view of an earlier version, which knows no GPU type', async () => {
    const kept = { views: [{ name: 'old', query: { username: 'ada' } }] };
    const [{ query }] = viewsOf(kept);
    await model.ask({ gpuType: 'K80' });
    await model.ask(query);
    expect(model.state.query).toEqual({ ...FIRST_QUERY, username: 'ada' });
  });

  it('drops the answer to an earlier question', async () => {
    const early = new Held();
    server.on('GET jobs', ({ query }) =>
      query.get('keyword') ? json(page('match')) : early.answer
    );
    const first = model.ask({});
    await model.ask({ keyword: 'ma' });
    early.release(json(page('a', 'b')));
    await first;
    expect(model.state.total).toBe(1);
  });

  it('asks once while it scrolls, and then for what is in sight', async () => {
    await model.ask({});
    const before = server.requests.length;
    const held = new Held();
    server.on('GET jobs', () => held.answer);
    for (let row = 90; row < 5_000; row += 10) {
      model.look(row, row + 40);
    }
    await until(() => server.requests.length > before);
    expect(server.requests).toHaveLength(before + 1);
    server.on('GET jobs', () => json(page('last', 'but', 'one')));
    held.release(json({ ...(page('a') as object), totalCount: TOTAL }));
    await until(() => model.state.rows.get(4_900)?.name === 'last');
    expect(server.requests).toHaveLength(before + 2);
    expect(server.requests[before + 1].query.get('offset')).toBe('4900');
  });

  it('asks again where a request failed, once the user scrolls on', async () => {
    await model.ask({});
    server.on('GET jobs', () => json({}, 503));
    model.look(500, 540);
    await until(() => model.state.problem !== null);
    const failed = server.requests.length;
    model.look(510, 550);
    await until(() => server.requests.length > failed);
  });

  it('renders some of 100,000 rows and marks by keyboard and pointer', async () => {
    await model.ask({});
    const host = shown();
    const table = host.querySelector('table');
    expect(table?.getAttribute('aria-rowcount')).toBe(String(TOTAL + 1));
    expect(host.querySelectorAll('tbody tr').length).toBeLessThan(80);
    model.mark(summary({ uid: 'j3' }), true);
    expect([...model.state.marked.keys()]).toEqual(['j3']);
    model.markAll(true);
    expect(model.state.marked.size).toBe(100);
    await model.ask({ keyword: 'x' });
    expect(model.state.marked.size).toBe(0);
  });

  it('words waiting times and numbers', () => {
    const job = summary({
      submissionTime: '2026-11-21T10:00:00Z',
      launchedTime: '2026-11-21T10:01:01Z'
    });
    expect(waited(trans, job)).toBe('1 min 1 s');
    expect(numbersText(trans, 2, 5)).toBe('2 running · 5 waiting');
  });
});

describe('a change of many jobs', () => {
  let server: FakeServer;
  let commands: CommandRegistry;
  let model: JobListModel;
  const jobs = ['a', 'b', 'c'];
  const sent = () =>
    server.requests
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path, body }) => `${method} ${path} ${body}`);

  beforeEach(() => {
    Notification.dismiss();
    server = new FakeServer();
    server.on('GET jobs', () => json(page()));
    model = new JobListModel({ client: server.client });
    commands = new CommandRegistry();
    addChangeJobs(commands, { client: server.client, model, trans });
    for (const job of jobs) {
      server.on(`PUT jobs/${job}/executionType`, () => json({}, 202));
    }
  });

  afterEach(() => {
    model.dispose();
  });

  it('asks once, does what it can and tells what was refused once', async () => {
    const refusal = { code: 'ForbiddenUserError', message: 'Not yours.' };
    server.on('PUT jobs/b/executionType', () => json(refusal, 403));
    const done = commands.execute(CommandIDs.changeJobs, {
      what: 'stop',
      jobs
    });
    await waitForDialog();
    expect(sent()).toEqual([]);
    await acceptDialog();
    await done;
    expect(sent()).toEqual(
      jobs.map(job => `PUT jobs/${job}/executionType {"value":"STOP"}`)
    );
    const said = Notification.manager.notifications.map(each => each.message);
    expect(said).toEqual(['1 of 3 failed:\nNot yours.']);
  });

  it('restarts without a question', async () => {
    await commands.execute(CommandIDs.changeJobs, { what: 'restart', jobs });
    expect(sent()).toHaveLength(3);
  });
});
