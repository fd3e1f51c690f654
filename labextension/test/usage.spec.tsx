import { nullTranslator } from '@jupyterlab/translation';
import * as React from 'react';
import { flushSync } from 'react-dom';
import type { Root } from 'react-dom/client';
import { createRoot } from 'react-dom/client';
import type { IBudget, IUsage, IUsageRow } from '../src/types';
import { csvOf } from '../src/usage/csv';
import { UsageModel } from '../src/usage/model';
import { boundsOf, boundsOfDays } from '../src/usage/range';
import { seriesOf } from '../src/usage/series';
import { UsageContent } from '../src/usage/view';
import { FakeServer, Held, json } from './fake_server';

const trans = nullTranslator.load('jupyter_pai');
const NOW = Date.parse('2026-11-29T12:00:00Z');
const DAYS = ['2026-11-27', '2026-11-28'];

function row(change: Partial<IUsageRow>): IUsageRow {
  return {
    user: null,
    group: null,
    virtualCluster: null,
    gpuType: null,
    day: null,
    job: null,
    quota: null,
    gpuHours: 0,
    cpuHours: 0,
    cost: null,
    runs: 1,
    daily: null,
    ...change
  };
}

/** A user who held so many GPU hours on each day, which cost twice as much. */
function user(name: string, ...hours: number[]): IUsageRow {
  const gpuHours = hours.reduce((sum, each) => sum + each, 0);
  return row({
    user: name,
    gpuHours,
    cpuHours: 1,
    cost: (2 * gpuHours).toFixed(2),
    daily: {
      gpuHours: hours,
      cpuHours: hours.map(() => 0.5),
      cost: hours.map(each => (2 * each).toFixed(2))
    }
  });
}

function usage(
  data: readonly IUsageRow[],
  change: Partial<IUsage> = {}
): IUsage {
  return {
    since: '2026-11-27T00:00:00Z',
    until: '2026-11-29T00:00:00Z',
    currency: 'EUR',
    total: { gpuHours: 8.5, cpuHours: 2, cost: '17.00' },
    days: DAYS,
    data,
    ...change
  };
}

function budget(change: Partial<IBudget>): IBudget {
  return {
    id: 'b1',
    user: null,
    group: null,
    virtualCluster: null,
    resource: 'gpu',
    per: 'month',
    hours: 100,
    usedHours: 99.99,
    amount: null,
    usedAmount: null,
    currency: null,
    level: 'near',
    warnPercent: 80,
    begins: '2026-11-01T00:00:00Z',
    ends: '2026-12-01T00:00:00Z',
    changedAt: '2026-11-01T00:00:00Z',
    changedBy: 'root',
    mayChange: false,
    ...change
  };
}

describe('the times of usage', () => {
  it('are of days of UTC, and weeks begin on Monday', () => {
    expect(boundsOf('week', NOW)).toEqual({
      since: '2026-11-23T00:00:00.000Z'
    });
    const monday = Date.parse('2026-11-30T00:00:00Z');
    expect(boundsOf('week', monday).since).toBe('2026-11-30T00:00:00.000Z');
    expect(boundsOf('month', NOW).since).toBe('2026-11-01T00:00:00.000Z');
    const january = Date.parse('2027-01-31T23:59:59Z');
    expect(boundsOf('last-month', january)).toEqual({
      since: '2026-12-01T00:00:00.000Z',
      until: '2027-01-01T00:00:00.000Z'
    });
    expect(boundsOf('quarter', NOW).since).toBe('2026-09-01T00:00:00.000Z');
  });

  it('include the last day, and need two days in order', () => {
    expect(boundsOfDays('2026-02-28', '2026-02-28')).toEqual({
      since: '2026-02-28T00:00:00.000Z',
      until: '2026-03-01T00:00:00.000Z'
    });
    for (const days of [
      ['2026-02-28', ''],
      ['', '2026-02-28'],
      ['2026-03-01', '2026-02-28'],
      ['2026-13-01', '2026-13-02']
    ]) {
      expect(boundsOfDays(days[0], days[1])).toBeNull();
    }
  });
});

describe('the page of usage', () => {
  let server: FakeServer;
  let model: UsageModel;
  let host: HTMLElement;
  let root: Root;

  const show = async (
    found: IUsage,
    budgets: readonly IBudget[] = []
  ): Promise<void> => {
    server.on('GET usage', () => json(found));
    server.on('GET budgets', () => json({ data: budgets }));
    model.changed.connect(render);
    await model.refresh();
  };
  const render = () =>
    flushSync(() =>
      root.render(<UsageContent key="page" model={model} trans={trans} />)
    );
  const rowsOf = (table: string) =>
    [...host.querySelectorAll(`table[aria-label="${table}"] tbody tr`)].map(
      each => [...each.children].map(cell => cell.textContent!)
    );
  const asked = () =>
    server.requests
      .filter(({ path }) => path === 'usage')
      .map(({ query }) => Object.fromEntries(query));
  const press = (text: string) =>
    flushSync(() =>
      [...host.querySelectorAll('button')]
        .find(each => each.textContent!.startsWith(text))!
        .click()
    );

  beforeEach(() => {
    server = new FakeServer();
    model = new UsageModel(server.client, () => NOW);
    host = document.createElement('div');
    document.body.append(host);
    root = createRoot(host);
  });

  afterEach(() => {
    model.dispose();
    root.unmount();
    host.remove();
  });

  it('shows hours and costs, the most first, and sorts by what is asked', async () => {
    await show(usage([user('ann', 1, 2), user('bob', 5, 0.5)]));
    expect(asked()).toEqual([
      { by: 'user', since: '2026-11-01T00:00:00.000Z', daily: 'true' }
    ]);
    expect(rowsOf('Usage')).toEqual([
      ['bob', '5.5', '1.0', '11.00', '1'],
      ['ann', '3.0', '1.0', '6.00', '1']
    ]);
    expect(host.textContent).toContain(
      '2026-11-27 to 2026-11-28 (UTC). Together 8.5 GPU hours · 2.0 CPU hours · 17.00 EUR.'
    );
    press('User');
    expect(rowsOf('Usage')[0][0]).toBe('ann');
    press('User');
    expect(rowsOf('Usage')[0][0]).toBe('bob');
    const sorted = host.querySelector('[aria-sort="descending"]')!;
    expect(sorted.textContent).toContain('User');
    expect(asked()).toHaveLength(1);
  });

  it('has no costs without prices', async () => {
    const free = { ...user('ann', 1), cost: null };
    await show(usage([free], { currency: null }));
    expect(rowsOf('Usage')).toEqual([['ann', '1.0', '1.0', '1']]);
    expect(host.textContent).not.toContain('Cost');
    expect(host.textContent).not.toContain('EUR');
  });

  it('reads the plot day by day with the keys', async () => {
    await show(usage([user('ann', 1, 2), user('bob', 5, 0)]));
    const plot = host.querySelector('[role="slider"]')!;
    const key = (name: string) =>
      flushSync(() =>
        plot.dispatchEvent(
          new KeyboardEvent('keydown', { key: name, bubbles: true })
        )
      );
    expect(plot.getAttribute('aria-valuetext')).toBe(
      '2026-11-28: 2.0 GPU hours (ann 2.0)'
    );
    key('Home');
    expect(plot.getAttribute('aria-valuetext')).toBe(
      '2026-11-27: 6.0 GPU hours (bob 5.0, ann 1.0)'
    );
    expect(host.querySelectorAll('.jp-pai-Plot rect')).toHaveLength(3);
  });

  it('draws the largest parts, and the rest together', async () => {
    const users = [9, 8, 7, 6, 5, 4, 3, 2].map(n => user(`u${n}`, n, 0));
    await show(usage([...users, user('idle', 0, 0)]));
    const { days, series } = seriesOf(model.state);
    expect(days).toEqual(DAYS);
    expect(series.map(({ name }) => name)).toEqual([
      ...['u9', 'u8', 'u7', 'u6', 'u5', 'u4'],
      null
    ]);
    expect(series[6].values).toEqual([5, 0]);
    model.show('cost');
    expect(seriesOf(model.state).series[0].values).toEqual([18, 0]);
  });

  it('shows days in their order, and those without use', async () => {
    await show(usage([]));
    const data = [row({ day: '2026-11-28', gpuHours: 2, cost: '4.00' })];
    server.on('GET usage', () => json(usage(data, { days: [] })));
    await model.choose({ by: 'day' });
    expect(asked()[1]).toMatchObject({ by: 'day', daily: 'false' });
    expect(seriesOf(model.state)).toEqual({
      days: DAYS,
      series: [{ name: '', values: [0, 2] }]
    });
    expect(rowsOf('Usage')).toEqual([
      ['2026-11-28', '2.0', '0.0', '4.00', '1']
    ]);
  });

  it('drops an answer to an earlier choice, and keeps what it has when one fails', async () => {
    await show(usage([user('ann', 1, 0)]));
    const held = new Held();
    server.on('GET usage', () => held.answer);
    const slow = model.choose({ range: 'week' });
    server.on('GET usage', () => json(usage([user('bob', 1, 0)])));
    await model.choose({ range: 'quarter' });
    held.release(json(usage([user('late', 1, 0)])));
    await slow;
    expect(rowsOf('Usage').map(([name]) => name)).toEqual(['bob']);
    server.on('GET usage', () =>
      json({ code: 'InvalidParametersError', message: 'Too long.' }, 400)
    );
    await model.choose({ range: 'month' });
    expect(host.querySelector('[role="alert"]')!.textContent).toContain(
      'Too long.'
    );
    expect(rowsOf('Usage').map(([name]) => name)).toEqual(['bob']);
  });

  it('asks for days of the user when both are there', async () => {
    await show(usage([]));
    await model.choose({ range: 'own' });
    await model.choose({ first: '2026-11-02' });
    expect(asked()).toHaveLength(1);
    await model.choose({ last: '2026-11-03' });
    expect(asked()[1]).toMatchObject({
      since: '2026-11-02T00:00:00.000Z',
      until: '2026-11-04T00:00:00.000Z'
    });
  });

  it('shows the budgets, and one of which something is left not as used up', async () => {
    await show(usage([]), [
      budget({ user: 'ann', virtualCluster: 'vc1' }),
      budget({
        id: 'b2',
        group: 'vision',
        resource: 'money',
        hours: null,
        usedHours: null,
        amount: '1200.00',
        usedAmount: '1300.50',
        currency: 'EUR',
        level: 'used-up',
        per: 'total',
        ends: null
      })
    ]);
    expect(rowsOf('Budgets')).toEqual([
      [
        'User ann · Virtual cluster vc1',
        '100.0 GPU hours',
        '99.9 GPU hours',
        '99 %',
        '2026-11-01 to 2026-11-30'
      ],
      [
        'Group vision',
        '1,200.00 EUR',
        '1,300.50 EUR',
        'used up',
        'since 2026-11-01'
      ]
    ]);
  });

  it('writes what pai writes for a spreadsheet', () => {
    const rows = [user('a,"b"', 1.5), user('ann', 0)];
    expect(csvOf(usage(rows), 'user', rows)).toBe(
      'user,gpuHours,cpuHours,runs,cost,currency\n' +
        '"a,""b""",1.500000,1.000000,1,3.00,EUR\n' +
        'ann,0.000000,1.000000,1,0.00,EUR\n'
    );
    const free = row({ gpuType: '', cpuHours: 2 });
    expect(csvOf(usage([free], { currency: null }), 'type', [free])).toBe(
      'gpuType,gpuHours,cpuHours,runs\n,0.000000,2.000000,1\n'
    );
  });

  it('shows many rows in steps', async () => {
    const many = Array.from({ length: 250 }, (_, n) => user(`u${n}`, 250 - n));
    await show(usage(many));
    expect(rowsOf('Usage')).toHaveLength(200);
    press('Show 50');
    expect(rowsOf('Usage')).toHaveLength(250);
  });
});
