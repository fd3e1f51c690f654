import { Notification } from '@jupyterlab/apputils';
import { acceptDialog, waitForDialog } from '@jupyterlab/testing';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { addKernelCommands } from '../src/kernels/commands';
import { documentOf } from '../src/kernels/form';
import { sayEnded, sayRestarted } from '../src/kernels/plugin';
import { CommandIDs } from '../src/tokens';
import { FakeServer, json } from './fake_server';
import { clusterUse, detail } from './wire';

const NOTHING = {
  image: '',
  gpuType: '',
  gpus: 0,
  virtualCluster: '',
  idleTimeout: ''
};
const trans = nullTranslator.load('jupyter_pai');

describe('kernels in jobs', () => {
  let server: FakeServer;
  let commands: CommandRegistry;
  let opened: unknown[];
  let refreshed: number;

  beforeEach(() => {
    server = new FakeServer();
    commands = new CommandRegistry();
    opened = [];
    refreshed = 0;
    commands.addCommand('notebook:create-new', {
      describedBy: { args: { type: 'object', properties: {} } },
      execute: args => {
        opened.push(args);
      }
    });
    addKernelCommands(commands, {
      client: server.client,
      trans,
      refresh: () => {
        refreshed += 1;
        return Promise.resolve();
      },
      newName: () => 'kernel-1',
      rest: () => Promise.resolve()
    });
    server.on('GET cluster/use', () => json(clusterUse()));
    Notification.dismiss();
  });

  it('start a job, say why it waits, and open a notebook when it runs', async () => {
    const states = ['WAITING', 'RUNNING'];
    const said: string[] = [];
    const listen = () => {
      said.push(...Notification.manager.notifications.map(n => n.message));
    };
    Notification.manager.changed.connect(listen);
    server.on('POST jobs', () =>
      json(detail({ uid: 'u1', name: 'kernel-1', state: 'WAITING' }))
    );
    server.on('PUT jobs/u1/tag', () => json({}));
    server.on('GET jobs/u1', () =>
      json(
        detail({
          uid: 'u1',
          name: 'kernel-1',
          alias: 'kernel-1',
          state: states.shift() as 'WAITING',
          why: 'No GPU is free.'
        })
      )
    );
    const done = commands.execute(CommandIDs.newKernel);
    await waitForDialog();
    await acceptDialog();
    await done;
    Notification.manager.changed.disconnect(listen);
    expect(said.join()).toContain(
      'The kernel waits for job kernel-1. No GPU is free.'
    );
    expect(opened).toEqual([{ kernelName: 'pai:kernel-1' }]);
    expect(refreshed).toBe(1);
    const sent = server.requests.filter(each => each.method !== 'GET');
    expect(sent.map(each => each.path.split('?')[0])).toEqual([
      'jobs',
      'jobs/u1/tag'
    ]);
    expect(sent[0].body).toContain('"gpuNumber":1');
    expect(JSON.parse(sent[1].body)).toEqual({ value: 'made-for-kernel' });
  });

  it('leave out what was not chosen', () => {
    const made: unknown = JSON.parse(
      documentOf({ ...NOTHING, image: 'i', gpus: 2 }, 'k')
    );
    expect(made).not.toHaveProperty('extras');
    expect(made).not.toHaveProperty('gpuType');
    expect(made).not.toHaveProperty('virtualCluster');
    expect(made).toHaveProperty('taskRoles.0.gpuNumber', 2);
  });

  it('are stopped when nothing uses them for as long as was chosen', () => {
    const made: unknown = JSON.parse(
      documentOf({ ...NOTHING, idleTimeout: '8h' }, 'k')
    );
    expect(made).toHaveProperty('extras.idleTimeout', '8h');
  });

  it('say why they are started again', async () => {
    server.on('GET kernels', () =>
      json({
        kernels: [
          { id: 'k1', state: 'connected', reason: 'Its memory is used up.' },
          { id: 'k2', state: 'connected', reason: '' }
        ]
      })
    );
    for (const id of ['k1', 'k2', 'k3']) {
      await sayRestarted(server.client, trans, id);
    }
    const said = Notification.manager.notifications.map(n => n.message);
    expect(said).toEqual([
      'A kernel in a job is started again. Its memory is used up.'
    ]);
  });

  it('say why they have ended', async () => {
    server.on('GET kernels', () =>
      json({
        kernels: [{ id: 'k1', state: 'ended', reason: 'Job train has ended.' }]
      })
    );
    const model = { id: 'k1', name: 'pai:train' };
    await sayEnded(server.client, trans, [model, { ...model, id: 'k2' }]);
    const said = Notification.manager.notifications.map(n => n.message);
    expect(said).toEqual(['A kernel in a job has ended. Job train has ended.']);
  });
});
