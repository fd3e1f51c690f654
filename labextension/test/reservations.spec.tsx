import { acceptDialog, waitForDialog } from '@jupyterlab/testing';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { addClusterCommands } from '../src/cluster/commands';
import { ClusterModel } from '../src/cluster/model';
import { ReservationsPart } from '../src/cluster/reservations';
import { CommandIDs } from '../src/tokens';
import type { IReservation } from '../src/types';
import { FakeServer, json } from './fake_server';

const trans = nullTranslator.load('jupyter_pai');
const HOUR = 3600_000;

function reservation(change: Partial<IReservation> = {}): IReservation {
  const from = Date.now() + HOUR;
  return {
    id: '0a1b2c3d',
    virtualCluster: 'vision',
    name: 'course',
    gpus: 8,
    gpuType: '',
    oneNode: true,
    begins: new Date(from).toISOString(),
    ends: new Date(from + HOUR).toISOString(),
    users: ['sue'],
    groups: ['students'],
    stops: [],
    isYours: false,
    madeAt: new Date().toISOString(),
    madeBy: 'bob',
    mayRemove: true,
    ...change
  };
}

describe('reservations on the page of the cluster', () => {
  const shown = (data: IReservation[], mayReserve: string[] = []) =>
    renderToStaticMarkup(
      <ReservationsPart
        commands={new CommandRegistry()}
        reservations={{ data, mayReserve }}
        trans={trans}
        vc="vision"
      />
    );

  it('are those of the virtual cluster that are not over', () => {
    const over = new Date(Date.now() - 1000).toISOString();
    const text = shown([
      reservation(),
      reservation({ id: '1', name: 'exam', ends: over }),
      reservation({ id: '2', name: 'demo', virtualCluster: 'speech' })
    ]);
    expect(text).toContain('course');
    expect(text).toContain('8 in one node');
    expect(text).toContain('sue, group students');
    expect(text).not.toContain('exam');
    expect(text).not.toContain('demo');
    expect(text).not.toContain('<button');
  });

  it('are made and removed by who may', () => {
    const begins = new Date(Date.now() - 1000).toISOString();
    const text = shown(
      [reservation({ begins, users: [], groups: [] })],
      ['vision']
    );
    expect(text).toContain('>now<');
    expect(text).toContain('>all<');
    expect(text).toContain('aria-label="Remove the reservation course"');
    expect(text).toContain('aria-label="Reserve GPUs of vision"');
    expect(shown([])).toBe('');
    expect(shown([], ['vision'])).toContain('Nothing is reserved.');
  });
});

describe('the commands of reservations', () => {
  let server: FakeServer;
  let commands: CommandRegistry;
  let model: ClusterModel;
  const field = (label: string) =>
    [...document.querySelectorAll<HTMLLabelElement>('.jp-Dialog label')]
      .find(each => each.textContent!.startsWith(label))!
      .querySelector('input')!;

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

  it('send what was typed, with the zone of the browser', async () => {
    let sent: Record<string, unknown> = {};
    server.on('POST reservations', request => {
      sent = JSON.parse(String(request.body)) as Record<string, unknown>;
      return json(reservation());
    });
    const asking = commands.execute(CommandIDs.reserve, { vc: 'vision' });
    await waitForDialog();
    field('Reserved for').value = 'course';
    field('GPUs').value = '8';
    field('All in one node').checked = true;
    field('From').value = '2099-12-04T09:00';
    field('To').value = '2099-12-04T18:00';
    field('Groups').value = 'students, staff';
    await acceptDialog();
    await asking;
    expect(sent).toEqual({
      virtualCluster: 'vision',
      name: 'course',
      gpus: 8,
      gpuType: '',
      oneNode: true,
      begins: new Date('2099-12-04T09:00').toISOString(),
      ends: new Date('2099-12-04T18:00').toISOString(),
      users: [],
      groups: ['students', 'staff'],
      endOthers: false
    });
  });

  it('remove one after a question', async () => {
    const removed: string[] = [];
    server.on('DELETE reservations/0a1b2c3d', () => {
      removed.push('0a1b2c3d');
      return json({});
    });
    const args = { id: '0a1b2c3d', name: 'course' };
    const asking = commands.execute(CommandIDs.removeReservation, args);
    await waitForDialog();
    expect(document.querySelector('.jp-Dialog')!.textContent).toContain(
      'Remove the reservation course?'
    );
    expect(removed).toEqual([]);
    await acceptDialog();
    await asking;
    expect(removed).toEqual(['0a1b2c3d']);
  });
});
