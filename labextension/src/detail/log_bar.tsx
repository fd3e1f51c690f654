/**
 * Which output is shown, and what can be done with it.
 */

import { HTMLSelect } from '@jupyterlab/ui-components';
import * as React from 'react';
import { LogTools } from '../log/tools';
import type { LogStream } from '../types';
import { BesideSelect } from './beside';
import { tasksOf } from './model';
import type { IPageProps } from './overview';

/** Which output is shown, as a function of the model's state. */
export function LogBar(
  props: IPageProps & {
    onWrap: (wrap: boolean) => void;
    onTimed: (timed: boolean) => void;
    onBeside: (role: string, index: number) => void;
  }
): JSX.Element {
  const { model, trans, onWrap, onTimed } = props;
  const [wrap, setWrap] = React.useState(false);
  const { job, target, log } = model.state;
  if (!job || !target) {
    return <></>;
  }
  const tasks = tasksOf(job);
  const here = tasks.findIndex(
    task => task.role === target.role && task.index === target.index
  );
  const latest = tasks[here]?.attempt ?? 0;
  return (
    <>
      <HTMLSelect
        aria-label={trans.__('Task whose log is shown')}
        onChange={event => {
          const { role, index } = tasks[Number(event.target.value)];
          model.showLog({ role, index, stream: target.stream });
        }}
        options={tasks.map((task, value) => ({
          value,
          label: `${task.role}-${task.index}`
        }))}
        value={here}
      />
      {latest > 0 && (
        <HTMLSelect
          aria-label={trans.__('Run whose log is shown')}
          onChange={event =>
            model.showLog({ ...target, attempt: Number(event.target.value) })
          }
          options={Array.from({ length: latest + 1 }, (_, attempt) => ({
            value: attempt,
            label: trans.__('Run %1 of %2', attempt + 1, latest + 1)
          }))}
          value={target.attempt ?? latest}
        />
      )}
      <HTMLSelect
        aria-label={trans.__('Which output')}
        onChange={event =>
          model.showLog({ ...target, stream: event.target.value as LogStream })
        }
        options={[
          { value: 'all', label: trans.__('All output') },
          { value: 'stdout', label: trans.__('Standard output') },
          { value: 'stderr', label: trans.__('Standard error') }
        ]}
        value={target.stream}
      />
      <BesideSelect {...props} />
      {log && (
        <LogTools
          key={log.taskUid}
          log={log}
          onTimed={onTimed}
          onWrap={wrap => {
            setWrap(wrap);
            onWrap(wrap);
          }}
          trans={trans}
          wrap={wrap}
        />
      )}
    </>
  );
}
