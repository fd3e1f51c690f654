/**
 * The table of a job's tasks.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Button } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { StateMark } from '../components';
import { CommandIDs } from '../tokens';
import type { ITask } from '../types';
import { timeText } from '../words';

/** Ports as `label 15001, 15002`, one label a line. */
export function portLines(task: ITask): readonly string[] {
  return Object.entries(task.ports).map(
    ([label, ports]) => `${label} ${ports.join(', ')}`
  );
}

/** GPUs as `TITANX 0, 1`; empty for a task without. */
export function gpuText(task: ITask): string {
  return task.gpus.length > 0
    ? `${task.gpuType ?? ''} ${task.gpus.join(', ')}`.trim()
    : '';
}

/** The exit as a number and, when there is one, the signal's. */
export function exitText(trans: TranslationBundle, task: ITask): string {
  const { exit } = task;
  if (!exit) {
    return '';
  }
  return exit.signal === null
    ? String(exit.status)
    : trans.__('%1 (signal %2)', exit.status, exit.signal);
}

/** Whether the task has failed and can still be entered. */
export function isKept(task: ITask): boolean {
  return task.phase === 'kept for debugging';
}

/** What a task's exit means and what to do about it, for those who point at it. */
export function exitHelp(task: ITask): string {
  const { exit } = task;
  return exit ? [exit.message, exit.remedy].filter(Boolean).join('\n') : '';
}

function TaskRow(props: {
  job: string;
  task: ITask;
  commands: CommandRegistry;
  trans: TranslationBundle;
}): JSX.Element {
  const { job, task, commands, trans } = props;
  const ssh = task.sshCommand;
  const name = `${task.role}-${task.index}`;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>
        <StateMark trans={trans} state={task.state} />
        {isKept(task) && (
          <div>{trans.__('kept until %1', timeText(task.keptUntil))}</div>
        )}
      </td>
      <td>{task.node}</td>
      <td>{task.address}</td>
      <td>{gpuText(task)}</td>
      <td>
        {portLines(task).map(line => (
          <div key={line}>{line}</div>
        ))}
      </td>
      <td title={exitHelp(task)}>{exitText(trans, task)}</td>
      <td>
        {ssh && (task.state === 'RUNNING' || isKept(task)) && (
          <Button
            minimal
            small
            aria-label={trans.__('Copy the SSH command of %1', name)}
            onClick={() =>
              void commands.execute(CommandIDs.copySsh, { command: ssh })
            }
            title={ssh}
          >
            {trans.__('Copy')}
          </Button>
        )}
        {ssh && (task.state === 'RUNNING' || isKept(task)) && (
          <Button
            minimal
            small
            aria-label={trans.__('Open a terminal in %1', name)}
            onClick={() =>
              void commands.execute(CommandIDs.openTerminal, {
                job,
                role: task.role,
                index: task.index
              })
            }
            title={trans.__('A shell that goes on when the connection is lost')}
          >
            {trans.__('Terminal')}
          </Button>
        )}
        {isKept(task) && (
          <Button
            minimal
            small
            aria-label={trans.__('Release %1', name)}
            onClick={() =>
              void commands.execute(CommandIDs.releaseJob, { job, task: name })
            }
          >
            {trans.__('Release')}
          </Button>
        )}
      </td>
    </tr>
  );
}

/** All tasks, one a row. */
export function TaskTable(props: {
  job: string;
  tasks: readonly ITask[];
  commands: CommandRegistry;
  trans: TranslationBundle;
}): JSX.Element {
  const { trans } = props;
  return (
    <div className="jp-pai-TaskTable">
      <table aria-label={trans.__('Tasks')}>
        <thead>
          <tr>
            <th scope="col">{trans.__('Task')}</th>
            <th scope="col">{trans.__('State')}</th>
            <th scope="col">{trans.__('Node')}</th>
            <th scope="col">{trans.__('IP')}</th>
            <th scope="col">{trans.__('GPUs')}</th>
            <th scope="col">{trans.__('Ports')}</th>
            <th scope="col">{trans.__('Exit')}</th>
            <th scope="col">{trans.__('SSH')}</th>
          </tr>
        </thead>
        <tbody>
          {props.tasks.map(task => (
            <TaskRow
              commands={props.commands}
              job={props.job}
              key={task.uid}
              task={task}
              trans={trans}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}
