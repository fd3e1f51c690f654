import { nullTranslator } from '@jupyterlab/translation';
import * as React from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { memoryText, MetricsTab } from '../src/detail/metrics';
import { HOUR } from '../src/detail/model';
import { pieces } from '../src/detail/plot';
import type { IJobMetrics, IUsePoint } from '../src/types';

const trans = nullTranslator.load('jupyter_pai');
const start = Date.parse('2026-11-25T10:00:00Z');

function sample(minute: number, change: Partial<IUsePoint> = {}): IUsePoint {
  return {
    at: new Date(start + minute * 60_000).toISOString(),
    cpus: 1.5,
    memoryMb: 2048,
    gpuPercent: minute * 10,
    gpuMemoryMb: 512,
    idleGpus: 0,
    ...change
  };
}

function metrics(gpus: number, samples: IUsePoint[]): IJobMetrics {
  const task = { role: 'main', gpus, cpus: 2, memoryMb: 4096, samples };
  return { sampleS: 60, tasks: [0, 1].map(index => ({ ...task, index })) };
}

function shown(found: IJobMetrics, onSpan = jest.fn()): HTMLElement {
  const host = document.createElement('div');
  document.body.append(host);
  const props = { trans, span: HOUR, metrics: found, onSpan };
  flushSync(() => createRoot(host).render(<MetricsTab {...props} />));
  return host;
}

describe('metrics of a job', () => {
  it('are plotted for each thing that was measured, and read by keys', () => {
    const host = shown(
      metrics(
        2,
        [0, 1, 2, 3].map(each => sample(each))
      )
    );
    const plots = [...host.querySelectorAll('[role="slider"]')];
    expect(plots.map(plot => plot.getAttribute('aria-label'))).toEqual([
      '2 GPUs at work',
      'GPU memory',
      'CPUs, of 2',
      'Memory, of 4.0 GiB'
    ]);
    const [gpus] = plots;
    expect(gpus.getAttribute('aria-valuetext')).toMatch(/^30 %, /);
    const press = (key: string) =>
      flushSync(() =>
        gpus.dispatchEvent(
          new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })
        )
      );
    press('ArrowLeft');
    expect(gpus.getAttribute('aria-valuetext')).toMatch(/^20 %, /);
    press('Home');
    expect(gpus.getAttribute('aria-valuenow')).toBe('0');
    press('ArrowLeft');
    expect(gpus.getAttribute('aria-valuetext')).toMatch(/^0 %, /);
  });

  it('have no curve of GPUs where there are none, and say what is not known', () => {
    const host = shown(metrics(0, [sample(0, { cpus: null }), sample(1)]));
    expect(host.querySelectorAll('[role="slider"]')).toHaveLength(2);
    const [first] = host.querySelectorAll('tbody tr');
    expect(
      [...first.querySelectorAll('td')].map(cell => cell.textContent)
    ).toEqual(['–', '2.0 GiB']);
  });

  it('say that nothing was measured', () => {
    expect(shown(metrics(1, [])).textContent).toContain('Nothing was measured');
  });

  it('are of the time and the task that are chosen', () => {
    const onSpan = jest.fn();
    const host = shown(metrics(1, [sample(0), sample(1)]), onSpan);
    const [tasks, span] = host.querySelectorAll('select');
    expect([...tasks.options].map(each => each.text)).toEqual([
      'main-0',
      'main-1'
    ]);
    span.value = String(24 * HOUR);
    flushSync(() => span.dispatchEvent(new Event('change', { bubbles: true })));
    expect(onSpan).toHaveBeenCalledWith(24 * HOUR);
  });
});

describe('a plot', () => {
  it('draws no line over what was not measured', () => {
    const at = (minute: number, value: number | null = 1) => ({
      at: minute * 60_000,
      value
    });
    const found = pieces([
      at(0),
      at(1),
      at(2, null),
      at(3),
      at(4),
      at(60),
      at(61)
    ]);
    expect(found.map(piece => piece.map(({ at }) => at / 60_000))).toEqual([
      [0, 1],
      [3, 4],
      [60, 61]
    ]);
  });

  it.each([
    [null, '–'],
    [512, '512 MiB'],
    [1536, '1.5 GiB']
  ])('tells %s MiB of memory as %s', (mib, text) => {
    expect(memoryText(mib)).toBe(text);
  });
});
