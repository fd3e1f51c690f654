/**
 * What the tasks of a job used over time.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect } from '@jupyterlab/ui-components';
import * as React from 'react';
import type { IJobMetrics, ITaskMetrics, IUsePoint } from '../types';
import { duration } from '../words';
import { DAY, HOUR, WEEK } from './model';
import { Plot } from './plot';

/** What can be plotted of a task. */
interface ICurve {
  readonly label: string;
  readonly value: (point: IUsePoint) => number | null;
  /** What the task may use; 0 when that is not known. */
  readonly limit: number;
  readonly words: (value: number | null) => string;
}

/** Memory in the unit that suits its size. */
export function memoryText(mib: number | null): string {
  if (mib === null) {
    return '–';
  }
  return mib < 1024
    ? `${Math.round(mib)} MiB`
    : `${(mib / 1024).toFixed(1)} GiB`;
}

/** The curves of a task; those of GPUs only where it has any. */
function curvesOf(trans: TranslationBundle, task: ITaskMetrics): ICurve[] {
  const number = (value: number | null) =>
    value === null ? '–' : value.toFixed(value < 10 ? 1 : 0);
  const ofGpus: ICurve[] = [
    {
      label: trans._n('%1 GPU at work', '%1 GPUs at work', task.gpus),
      value: point => point.gpuPercent,
      limit: 100,
      words: value => (value === null ? '–' : `${Math.round(value)} %`)
    },
    {
      label: trans.__('GPU memory'),
      value: point => point.gpuMemoryMb,
      limit: 0,
      words: memoryText
    }
  ];
  return [
    ...(task.gpus > 0 ? ofGpus : []),
    {
      label: trans.__('CPUs, of %1', task.cpus),
      value: point => point.cpus,
      limit: task.cpus,
      words: number
    },
    {
      label: trans.__('Memory, of %1', memoryText(task.memoryMb)),
      value: point => point.memoryMb,
      limit: task.memoryMb,
      words: memoryText
    }
  ];
}

/** All numbers of a task, for those who rather read than look. */
function Numbers(props: {
  trans: TranslationBundle;
  task: ITaskMetrics;
  curves: readonly ICurve[];
}): JSX.Element {
  const { trans, task, curves } = props;
  return (
    <details className="jp-pai-Metrics-numbers">
      <summary>{trans.__('Numbers')}</summary>
      <div tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">{trans.__('Time')}</th>
              {curves.map(({ label }) => (
                <th key={label} scope="col">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {task.samples.map(point => (
              <tr key={point.at}>
                <th scope="row">{new Date(point.at).toLocaleString()}</th>
                {curves.map(({ label, value, words }) => (
                  <td key={label}>{words(value(point))}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** The plots of one task. */
function TaskPlots(props: {
  trans: TranslationBundle;
  task: ITaskMetrics;
  span: number;
  sampleS: number;
}): JSX.Element {
  const { trans, task, span, sampleS } = props;
  const { samples } = task;
  if (samples.length === 0) {
    return (
      <p>
        {trans.__(
          'Nothing was measured in this time. Running tasks are looked at every %1.',
          duration(trans, sampleS * 1000)
        )}
      </p>
    );
  }
  const until = Date.parse(samples[samples.length - 1].at);
  const first = Date.parse(samples[0].at);
  const from = Math.max(until - span * 1000, Math.min(first, until - 60_000));
  const curves = curvesOf(trans, task);
  const time = (at: number) =>
    new Date(at).toLocaleString(undefined, {
      ...(span > DAY && { month: 'short', day: 'numeric' }),
      hour: '2-digit',
      minute: '2-digit'
    });
  return (
    <>
      <div className="jp-pai-Metrics-plots">
        {curves.map(({ label, value, limit, words }) => {
          const points = samples.map(point => ({
            at: Date.parse(point.at),
            value: value(point)
          }));
          const most = Math.max(
            limit,
            ...points.map(point => point.value ?? 0)
          );
          return (
            <Plot
              from={from}
              key={label}
              label={label}
              most={most || 1}
              points={points}
              time={time}
              until={until}
              words={words}
            />
          );
        })}
      </div>
      <Numbers curves={curves} task={task} trans={trans} />
    </>
  );
}

/** The part of a job's page with what its tasks used; `metrics` are null until they are known. */
export function MetricsTab(props: {
  trans: TranslationBundle;
  metrics: IJobMetrics | null;
  span: number;
  onSpan: (seconds: number) => void;
}): JSX.Element {
  const { trans, metrics, span, onSpan } = props;
  const [chosen, setChosen] = React.useState(0);
  if (metrics === null) {
    return <p>{trans.__('Loading…')}</p>;
  }
  const { tasks, sampleS } = metrics;
  const task = tasks[Math.min(chosen, tasks.length - 1)];
  return (
    <>
      <div className="jp-pai-Metrics-bar">
        {tasks.length > 1 && (
          <HTMLSelect
            aria-label={trans.__('Task whose metrics are shown')}
            onChange={event => setChosen(Number(event.target.value))}
            options={tasks.map(({ role, index }, value) => ({
              value,
              label: `${role}-${index}`
            }))}
            value={chosen}
          />
        )}
        <HTMLSelect
          aria-label={trans.__('Time that is shown')}
          onChange={event => onSpan(Number(event.target.value))}
          options={[
            { value: HOUR, label: trans.__('Last hour') },
            { value: DAY, label: trans.__('Last day') },
            { value: WEEK, label: trans.__('Last week') }
          ]}
          value={span}
        />
      </div>
      <TaskPlots sampleS={sampleS} span={span} task={task} trans={trans} />
    </>
  );
}
