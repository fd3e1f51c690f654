/**
 * Sweeps and notebooks as jobs: their order, their results, the parameters of a notebook.
 */

import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { JobListModel } from '../src/jobs/model';
import { NotebookForm, parametersOf } from '../src/notebooks/form';
import { lastLine, SweepModel } from '../src/sweeps/model';
import { sweepsPlugin } from '../src/sweeps/plugin';
import { countsText } from '../src/sweeps/view';
import { CommandIDs } from '../src/tokens';
import { FakeServer, Held, json } from './fake_server';
import { page, until } from './wire';
import type { IJobPage } from '../src/types';

const trans = nullTranslator.load('jupyter_pai');

describe('a sweep', () => {
  const server = () => {
    const made = new FakeServer();
    const values = ['10', '9', 'x'].map((lr, at) => ({
      uid: `rates-00${at}`,
      name: `rates-00${at}`,
      values: { lr }
    }));
    made.on('GET sweeps/rates', () => json({ name: 'rates', jobs: values }));
    made.on('GET jobs', () => {
      const all = ['rates-000', 'rates-001', 'rates-002', 'rates-x'];
      const found = page(...all) as IJobPage;
      const data = found.data.map(job => ({
        ...job,
        state: job.name === 'rates-000' ? 'RUNNING' : 'SUCCEEDED',
        completedTime: '2026-01-01T00:00:00Z'
      }));
      return json({ ...found, data });
    });
    for (const { uid, name } of values) {
      made.on(`GET jobs/${uid}/logs`, () => new Response(`a\nof ${name}\n\n`));
    }
    return made;
  };

  it('has its own jobs with the last lines of those that have ended', async () => {
    const fake = server();
    const model = new SweepModel(fake.client, 'rates');
    await model.load();
    const { rows, names, problem } = model.state;
    expect(problem).toBeNull();
    expect(names).toEqual(['lr']);
    expect(rows.map(row => [row.job.name, row.values.lr, row.result])).toEqual([
      ['rates-000', '10', null],
      ['rates-001', '9', 'of rates-001'],
      ['rates-002', 'x', 'of rates-002']
    ]);
    const logs = () => fake.requests.filter(({ path }) => /logs/.test(path));
    const before = logs().length;
    await model.load();
    expect(logs()).toHaveLength(before);
    expect(
      countsText(
        trans,
        rows.map(row => row.job)
      )
    ).toBe('Running 1 · Succeeded 2');
    model.dispose();
  });

  it('has the later of two answers, whichever comes first', async () => {
    const fake = server();
    const model = new SweepModel(fake.client, 'rates');
    await model.load();
    const [first, second] = [new Held(), new Held()];
    const answers = [first, second];
    fake.on('GET jobs', () => answers.shift()!.answer);
    const loads = [model.load(), model.load()];
    first.release(json(page('rates-000', 'rates-001')));
    await loads[0];
    expect(model.state.rows).toHaveLength(2);
    second.release(json(page('rates-000')));
    await loads[1];
    expect(model.state.rows).toHaveLength(1);
    model.dispose();
  });

  it('shows the end of a job that comes before the page knows the job', async () => {
    const fake = server();
    const held = new Held();
    const list = page('rates-001') as IJobPage;
    const ended = list.data.map(job => ({ ...job, state: 'SUCCEEDED' }));
    let asked = false;
    fake.on('GET jobs', ({ query }) => {
      const isFirst = !asked && query.get('keyword') === 'rates-';
      asked ||= isFirst;
      return isFirst ? held.answer : json({ ...list, data: ended });
    });
    const commands = new CommandRegistry();
    let shown: Widget | undefined;
    const shell = {
      add: (added: Widget) => {
        shown = added;
        Widget.attach(added, document.body);
      },
      activateById: () => undefined
    };
    const jobs = new JobListModel({ client: fake.client });
    void sweepsPlugin.activate(
      { commands, shell } as never,
      fake.client,
      jobs,
      null,
      null,
      null,
      null
    );
    await commands.execute(CommandIDs.openSweep, { sweep: 'rates' });
    await until(() => asked);
    await jobs.refresh(); // an event was pushed
    held.release(json(list));
    await until(
      () => shown?.node.textContent?.includes('Succeeded 1') ?? false
    );
    shown?.dispose();
    jobs.dispose();
  });

  it('is ordered by numbers as numbers, both ways', async () => {
    const model = new SweepModel(server().client, 'rates');
    await model.load();
    const order = () => model.state.rows.map(row => row.values.lr).join();
    model.orderBy('value:lr');
    expect(order()).toBe('9,10,x');
    model.orderBy('value:lr');
    expect(order()).toBe('x,10,9');
    model.dispose();
  });

  it('shows the last line that has text', () => {
    expect(lastLine('a\n\x1b[32mloss 1\x1b[0m\r\n \n')).toBe('loss 1');
    expect(lastLine('10%\r50%\r100%')).toBe('100%');
    expect(lastLine('')).toBe('');
  });
});

describe('a notebook', () => {
  const tagged = (source: string) => ({
    source,
    metadata: { tags: ['parameters'] }
  });

  it('has the parameters of its tagged cell', () => {
    const source =
      'import x\nlr = 0.1  # rate\nname: str = "a#b"\nok == 1\n  y = 2\nlist = [1, 2]';
    const found = parametersOf([{ source: 'z = 1' }, tagged(source)]);
    expect([...found]).toEqual([
      ['lr', '0.1'],
      ['name', 'a#b'],
      ['list', '[1, 2]']
    ]);
    expect(parametersOf([{ source: ['a = 1'] }]).size).toBe(0);
  });

  it('is asked for with the parameters that were changed alone', () => {
    const use = { virtualClusters: [] } as never;
    const given = parametersOf([tagged('lr = 0.1\nseed = 1')]);
    const form = new NotebookForm('a.ipynb', given, use, trans);
    const [lr] = [...form.node.querySelectorAll('label')].filter(label =>
      label.textContent?.includes('lr')
    );
    (lr.querySelector('input') as HTMLInputElement).value = '0.5';
    expect(form.getValue()).toMatchObject({
      path: 'a.ipynb',
      gpus: 0,
      parameters: { lr: '0.5' },
      withFolder: false
    });
    form.dispose();
  });
});
