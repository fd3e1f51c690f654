import { Notification } from '@jupyterlab/apputils';
import {
  acceptDialog,
  dismissDialog,
  waitForDialog
} from '@jupyterlab/testing';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { flushSync } from 'react-dom';
import type { Root } from 'react-dom/client';
import { createRoot } from 'react-dom/client';
import { partsOf, shapesText } from '../src/cluster/cells';
import { addClusterCommands } from '../src/cluster/commands';
import { ClusterModel } from '../src/cluster/model';
import { movesOf } from '../src/cluster/moves';
import { gpuTotals, troubledFirst } from '../src/cluster/nodes';
import { ClusterUse } from '../src/cluster/view';
import { CommandIDs } from '../src/tokens';
import type { IClusterUse } from '../src/types';
import { FakeServer, json } from './fake_server';
import {
  cells,
  clusterUse,
  node,
  orphan,
  queue,
  running,
  virtualCluster
} from './wire';

const trans = nullTranslator.load('jupyter_pai');

describe('the page of the cluster', () => {
  let server: FakeServer;
  let model: ClusterModel;
  let commands: CommandRegistry;
  let host: HTMLElement;
  let root: Root;
  const opened = jest.fn();

  const show = async (change: Partial<IClusterUse> = {}) => {
    server.on('GET cluster/use', () => json(clusterUse(change)));
    await model.refresh();
    const props = { model, commands, trans };
    flushSync(() => root.render(<ClusterUse {...props} />));
  };
  const button = (label: string) =>
    host.querySelector<HTMLElement>(`button[aria-label^="${label}"]`)!;
  const row = (table: string) =>
    [...host.querySelectorAll(`table[aria-label="${table}"] tbody tr`)].map(
      each => [...each.children].map(cell => cell.textContent)
    );

  beforeEach(() => {
    Notification.dismiss();
    opened.mockClear();
    server = new FakeServer();
    server.on('GET cluster/orphans', () => json({ data: [] }));
    model = new ClusterModel({ client: server.client });
    commands = new CommandRegistry();
    const describedBy = { args: { type: 'object' } };
    commands.addCommand(CommandIDs.openJob, { describedBy, execute: opened });
    addClusterCommands(commands, {
      client: server.client,
      model,
      trans,
      show: () => Promise.resolve()
    });
    host = document.createElement('div');
    document.body.append(host);
    root = createRoot(host);
  });

  afterEach(() => {
    model.dispose();
    root.unmount();
    host.remove();
  });

  it('tells by type what is owned, used, kept, broken and free', async () => {
    const use = cells({
      guaranteed: 3,
      opportunistic: 2,
      reserved: 1,
      bad: 1,
      free: 3
    });
    await show({ virtualClusters: [virtualCluster({ cells: [use] })] });
    expect(row('Cells of vision')).toEqual([
      ['V100', '8', '3', '2', '1', '1', '3']
    ]);
    expect(host.querySelector('.jp-pai-Cluster-bar')).not.toBeNull();
    expect(host.querySelector('th [title="1 V100-NODE"]')).not.toBeNull();
  });

  it('links the jobs that run and counts those of others', async () => {
    const use = virtualCluster({
      running: [running('train', { opportunistic: true })],
      unlistedJobs: 2,
      unlistedGpus: 12
    });
    await show({ virtualClusters: [use] });
    const list = host.querySelector('ul[aria-label="Running in vision"]')!;
    expect(list.textContent).toContain('1 task · 4 GPUs · opportunistic');
    expect(list.textContent).toContain('and 2 other jobs with 12 GPUs');
    expect(list.textContent).not.toContain('ada ·');
    list.querySelector('button')!.click();
    expect(opened).toHaveBeenCalledWith({ job: 'ada~train' });
  });

  it('shows names of users to administrators', async () => {
    const use = virtualCluster({
      running: [running('train')],
      queue: queue('night')
    });
    await show({ admin: true, virtualClusters: [use] });
    expect(host.querySelector('ul')?.textContent).toContain('ada · 1 task');
    expect(row('Waiting in vision')[0].slice(0, 4)).toEqual([
      '1 of 1',
      'night',
      'ada',
      '4'
    ]);
  });

  it('shows administrators what the database does not know, and ends it when asked twice', async () => {
    const known = [orphan('j7-0-0-0'), orphan('j8-0-0-0', { endedBy: 'root' })];
    server.on('GET cluster/orphans', () => json({ data: known }));
    await show({ admin: true });
    const rows = row('Orphans');
    expect(rows.map(([task, state, , why]) => [task, state, why])).toEqual([
      ['j7-0-0-0', 'running', 'it carries no record of its job'],
      [
        'j8-0-0-0',
        'running, end requested by root',
        'it carries no record of its job'
      ]
    ]);
    expect(button('End j8').hasAttribute('disabled')).toBe(true);
    server.on('DELETE cluster/orphans/j7-0-0-0', () => {
      known.shift();
      return new Response(null, { status: 204 });
    });
    const ending = commands.execute(CommandIDs.endOrphan, { task: 'j7-0-0-0' });
    await waitForDialog();
    await dismissDialog();
    await ending;
    expect(model.state.orphans).toHaveLength(2);
    const again = commands.execute(CommandIDs.endOrphan, { task: 'j7-0-0-0' });
    await waitForDialog();
    await acceptDialog();
    await again;
    expect(model.state.orphans.map(({ task }) => task)).toEqual(['j8-0-0-0']);
  });

  it('asks for no orphans on behalf of those who may not see them', async () => {
    await show({ admin: false });
    expect(host.textContent).not.toContain('Orphans');
    expect(server.requests.map(({ path }) => path).sort()).toEqual([
      'cluster/use',
      'reservations'
    ]);
  });

  it('moves a job to where the button says, and tells its new place', async () => {
    const use = virtualCluster({ queue: queue('a', 'b', 'c') });
    await show({ virtualClusters: [use] });
    server.on('POST jobs/ada~c/move', () => json({ message: '', jobs: [] }));
    const after = virtualCluster({ queue: queue('a', 'c', 'b') });
    server.on('GET cluster/use', () =>
      json(clusterUse({ virtualClusters: [after] }))
    );
    button('Move c up').click();
    await new Promise<void>(resolve => {
      Notification.manager.changed.connect(() => resolve());
    });
    const [asked] = server.requests.filter(({ method }) => method === 'POST');
    expect(JSON.parse(asked.body)).toEqual({ before: 'ada~b' });
    expect(Notification.manager.notifications[0].message).toBe(
      'c is number 2 of 3 now.'
    );
  });

  it('says why a job cannot go further, and asks for nothing', async () => {
    await show({
      virtualClusters: [virtualCluster({ queue: queue('a', 'b') })]
    });
    const up = button('Move a up');
    expect(up.getAttribute('aria-disabled')).toBe('true');
    expect(up.title).toBe(
      'Move a up: not possible, it is already the first of your jobs in its queue'
    );
    up.click();
    expect(button('Move b down').title).toContain('last of your jobs');
    expect(button('Move a down').getAttribute('aria-disabled')).toBe('false');
    expect(server.requests.every(({ method }) => method === 'GET')).toBe(true);
  });

  it('reports a move that was refused and shows how things stand', async () => {
    await show({
      virtualClusters: [virtualCluster({ queue: queue('a', 'b') })]
    });
    const refusal = { code: 'NotWaitingJobError', message: 'It runs.' };
    server.on('POST jobs/ada~b/move', () => json(refusal, 409));
    const read = server.requests.length;
    await commands.execute(CommandIDs.moveJob, { job: 'ada~b' });
    expect(Notification.manager.notifications[0].message).toBe(
      'It runs.\nOnly waiting jobs can be moved.'
    );
    const gets = server.requests.slice(read).map(({ method }) => method);
    expect(gets).toEqual(['POST', 'GET', 'GET']);
  });

  it('gives the focus back to the button of a row that has moved', async () => {
    await show({
      virtualClusters: [virtualCluster({ queue: queue('a', 'b') })]
    });
    server.on('POST jobs/ada~b/move', () => json({ message: '', jobs: [] }));
    button('Move b up').click();
    expect(document.activeElement).toBe(document.body);
    await show({
      virtualClusters: [virtualCluster({ queue: queue('b', 'a') })]
    });
    expect(document.activeElement).toBe(
      host.querySelector('[data-move="b up"]')
    );
  });

  it('tells of jobs of others that wait only how many they are', async () => {
    const use = virtualCluster({ queue: queue('a'), waiting: 4 });
    await show({ virtualClusters: [use] });
    expect(host.textContent).toContain('3 jobs of others wait.');
    await show({ virtualClusters: [virtualCluster()] });
    expect(host.textContent).toContain('No job is waiting.');
    expect(host.textContent).toContain('Nothing runs here.');
  });

  it('says what there is when there are no GPUs, and which nodes', async () => {
    const bare = node({ gpus: 0, usedGpus: 0, gpuTypes: [] });
    const virtualClusters = [virtualCluster({ cells: [] })];
    await show({ shared: true, virtualClusters, nodes: [bare] });
    expect(host.textContent).toContain('There are no GPUs here');
    expect(host.querySelector('table[aria-label^="Cells"]')).toBeNull();
    expect(row('Nodes')).toEqual([
      ['node-a', 'ready', 'none', '12 of 64', '1.5 of 512 GiB']
    ]);
  });

  it('names nodes in trouble first, with the reason', async () => {
    const nodes = [
      node(),
      node({ name: 'b', schedulable: false, otherGpus: 4, otherCpus: 4 }),
      node({ name: 'c', badGpus: 1, otherGpus: 2 }),
      node({ name: 'd', ready: false, reason: 'no heartbeat', badGpus: 8 })
    ];
    await show({ nodes });
    expect(row('Nodes').map(cellsOf => cellsOf.slice(0, 3))).toEqual([
      ['d', 'unavailable: no heartbeat', '3 of 8 V100, 8 broken'],
      ['c', 'ready', '3 of 8 V100, 1 broken, 2 held by pods of others'],
      ['b', 'no new tasks start here', '3 of 8 V100, 4 held by pods of others'],
      ['node-a', 'ready', '3 of 8 V100']
    ]);
    expect(host.textContent).toContain('12 of 32 GPUs in use, 9 broken.');
  });

  it('shows many nodes only when they are asked for', async () => {
    const nodes = Array.from({ length: 60 }, (_, at) =>
      node({ name: `n${at}` })
    );
    await show({ nodes });
    expect(row('Nodes')).toHaveLength(50);
    const more = [...host.querySelectorAll('button')].find(
      each => each.textContent === 'Show all 60 nodes'
    );
    flushSync(() => more!.click());
    expect(row('Nodes')).toHaveLength(60);
  });

  it('is loading, then has a problem, with nothing else', async () => {
    const props = { model, commands, trans };
    flushSync(() => root.render(<ClusterUse {...props} />));
    expect(host.textContent).toContain('Loading…');
    server.on('GET cluster/use', () => new Response('', { status: 503 }));
    await model.refresh();
    flushSync(() => root.render(<ClusterUse {...props} />));
    expect(host.querySelectorAll('[role="alert"]')).toHaveLength(1);
    expect(host.querySelector('section')).toBeNull();
  });
});

describe('what is made of the numbers', () => {
  it('a bar is made of what is owned', () => {
    const use = cells({ guaranteed: 3, reserved: 1, bad: 1, free: 3 });
    expect(partsOf(use, false)).toEqual([
      { kind: 'guaranteed', cells: 3 },
      { kind: 'reserved', cells: 1 },
      { kind: 'bad', cells: 1 }
    ]);
  });

  it('where all share, others have the rest', () => {
    const use = cells({ guaranteed: 2, opportunistic: 1, free: 1 });
    expect(partsOf(use, true)).toEqual([
      { kind: 'guaranteed', cells: 3 },
      { kind: 'others', cells: 4 }
    ]);
    expect(shapesText(cells({ shapes: { NODE: 2, SWITCH: 1 } }))).toBe(
      '2 NODE, 1 SWITCH'
    );
  });

  it('jobs of another queue are passed over', () => {
    const rows = queue('a', 'b', 'c');
    const mixed = [rows[0], { ...rows[1], queue: 'vision:100' }, rows[2]];
    expect(movesOf(mixed, mixed[2])).toEqual({
      first: { to: 'first' },
      up: { before: 'ada~a' },
      down: null
    });
    expect(movesOf(mixed, mixed[1])).toEqual({
      first: null,
      up: null,
      down: null
    });
  });

  it('nodes are summed up and put in order', () => {
    const nodes = [node({ name: 'x' }), node({ name: 'y', badGpus: 2 })];
    expect(gpuTotals(nodes)).toEqual({ all: 16, used: 6, bad: 2 });
    expect(troubledFirst(nodes).map(({ name }) => name)).toEqual(['y', 'x']);
  });
});
