/**
 * Sweeps and notebooks as jobs: their order, their results, the parameters of a notebook.
 */

import { nullTranslator } from '@jupyterlab/translation';
import { NotebookForm, parametersOf } from '../src/notebooks/form';
import { lastLine, SweepModel } from '../src/sweeps/model';
import { countsText } from '../src/sweeps/view';
import { FakeServer, json } from './fake_server';
import { page } from './wire';
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
