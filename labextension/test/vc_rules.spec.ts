import { acceptDialog, waitForDialog } from '@jupyterlab/testing';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { addClusterCommands } from '../src/cluster/commands';
import { ClusterModel } from '../src/cluster/model';
import { lengthText } from '../src/cluster/rules';
import { CommandIDs } from '../src/tokens';
import type { IVcRules } from '../src/types';
import { FakeServer, json } from './fake_server';

const trans = nullTranslator.load('jupyter_pai');
const PATH = 'virtual-clusters/vision/rules';

function rules(change: Partial<IVcRules['rules']> = {}): IVcRules {
  return {
    virtualCluster: 'vision',
    rules: {
      mostGpusPerUser: null,
      mostJobsPerUser: 3,
      longestRunS: null,
      gpuTypes: null,
      images: ['registry.lab/*'],
      priorities: null,
      idleBelowPercent: 5,
      idleForS: 7200,
      idleStops: true,
      ...change
    },
    inForce: { mostGpusPerUser: 4, mostJobsPerUser: 3, longestRunS: null },
    fromConfiguration: ['mostGpusPerUser'],
    mayChange: true,
    changedAt: null,
    changedBy: ''
  };
}

describe('the rules of a virtual cluster', () => {
  let server: FakeServer;
  let commands: CommandRegistry;
  let model: ClusterModel;
  const said = () => document.querySelector('.jp-Dialog')!.textContent;
  const field = (label: string) =>
    [...document.querySelectorAll<HTMLLabelElement>('.jp-Dialog label')]
      .find(each => each.textContent!.startsWith(label))!
      .querySelector('input')!;
  const bodies = () =>
    server.requests
      .filter(({ method }) => method === 'PUT')
      .map(({ body }): unknown => JSON.parse(String(body)));

  beforeEach(() => {
    server = new FakeServer();
    model = new ClusterModel({ client: server.client });
    commands = new CommandRegistry();
    const show = () => Promise.resolve();
    addClusterCommands(commands, {
      client: server.client,
      model,
      trans,
      show
    });
  });

  afterEach(() => model.dispose());

  it('are read by who may not change them', async () => {
    server.on(`GET ${PATH}`, () => json({ ...rules(), mayChange: false }));
    const showing = commands.execute(CommandIDs.vcRules, { vc: 'vision' });
    await waitForDialog();
    expect(said()).toContain('4, by the configuration of the backend');
    expect(said()).toContain('registry.lab/*');
    expect(said()).toContain(
      'jobs whose GPUs work less than 5 % for 2h are stopped after a warning'
    );
    expect(document.querySelector('.jp-Dialog input')).toBeNull();
    await acceptDialog();
    await showing;
  });

  it('are changed by who may, and only what differs is sent', async () => {
    server.on(`GET ${PATH}`, () => json(rules()));
    server.on(`PUT ${PATH}`, () => json(rules()));
    const showing = commands.execute(CommandIDs.vcRules, { vc: 'vision' });
    await waitForDialog();
    expect(field('GPUs of each user').disabled).toBe(true);
    field('Longest run').value = '1.5';
    field('Patterns of images').value = '';
    field('Priority crit').checked = false;
    field('for so many hours').value = '4';
    await acceptDialog();
    await showing;
    expect(bodies()).toEqual([
      {
        longestRunS: 5400,
        images: null,
        priorities: ['prod', 'test', 'oppo'],
        idleForS: 14400
      }
    ]);
  });

  it('keeps a rule that allows none, and sends nothing when nothing was changed', async () => {
    server.on(`GET ${PATH}`, () => json(rules({ images: [] })));
    const showing = commands.execute(CommandIDs.vcRules, { vc: 'vision' });
    await waitForDialog();
    await acceptDialog();
    await showing;
    expect(bodies()).toEqual([]);
  });

  it('writes lengths of time as the backend does', () => {
    expect([60, 9000, 90061].map(lengthText)).toEqual([
      '1m',
      '2h30m',
      '1d1h1m1s'
    ]);
  });
});
