/**
 * The table of a job's tasks.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { StateMark } from '../components';
import { CommandIDs } from '../tokens';
import { WindowedTable } from '../windowed';
import { exitWords } from '../worded';
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
export function exitHelp(trans: TranslationBundle, task: ITask): string {
  const words = task.exit && exitWords(trans, task.exit);
  return words ? [words.what, words.remedy].filter(Boolean).join('\n') : '';
}

/** A button of a row. */
export function RowButton(props: {
  label: string;
  title?: string;
  word: string;
  onClick: () => void;
}): JSX.Element {
  return (
    <button
      aria-label={props.label}
      className="jp-pai-JobLink jp-pai-RowButton"
      onClick={props.onClick}
      title={props.title}
    >
      {props.word}
    </button>
  );
}

/** What can be done with one task now. */
function TaskButtons(props: ITaskTableProps & { task: ITask }): JSX.Element {
  const { job, task, commands, trans, onLog } = props;
  const { role, index, sshCommand: command } = task;
  const name = `${role}-${index}`;
  const enterable = command && (task.state === 'RUNNING' || isKept(task));
  const run = (id: string, args: Record<string, string | number>) => () =>
    void commands.execute(id, args);
  return (
    <>
      <RowButton
        label={trans.__('Show the log of %1', name)}
        onClick={() => onLog(task)}
        word={trans.__('Log')}
      />
      {enterable && (
        <>
          <RowButton
            label={trans.__('Copy the SSH command of %1', name)}
            onClick={run(CommandIDs.copySsh, { command })}
            title={command}
            word={trans.__('Copy SSH')}
          />
          <RowButton
            label={trans.__('Open a terminal in %1', name)}
            onClick={run(CommandIDs.openTerminal, { job, role, index })}
            title={trans.__('A shell that goes on when the connection is lost')}
            word={trans.__('Terminal')}
          />
        </>
      )}
      {isKept(task) && (
        <RowButton
          label={trans.__('Release %1', name)}
          onClick={run(CommandIDs.releaseJob, { job, task: name })}
          word={trans.__('Release')}
        />
      )}
    </>
  );
}

/** What the table of tasks needs. */
interface ITaskTableProps {
  readonly job: string;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
  readonly onLog: (task: ITask) => void;
}

/** A cell whose text may be longer than its column. */
export function Cell(props: { text: string; title?: string }): JSX.Element {
  return <td title={props.title || props.text}>{props.text}</td>;
}

/** All tasks, one a row. */
export function TaskTable(
  props: ITaskTableProps & { tasks: readonly ITask[] }
): JSX.Element {
  const { trans, tasks } = props;
  return (
    <WindowedTable
      columns={[
        { id: 'task', head: trans.__('Task'), width: 120 },
        { id: 'state', head: trans.__('State'), width: 110 },
        { id: 'node', head: trans.__('Node'), width: 110 },
        { id: 'address', head: trans.__('IP'), width: 110 },
        { id: 'gpus', head: trans.__('GPUs'), width: 110 },
        { id: 'ports', head: trans.__('Ports'), width: 150 },
        { id: 'exit', head: trans.__('Exit'), width: 110 },
        { id: 'actions', head: trans.__('Actions'), width: 260 }
      ]}
      count={tasks.length}
      label={trans.__('Tasks')}
      row={(place, attributes) => {
        const task = tasks[place];
        const name = `${task.role}-${task.index}`;
        const kept =
          isKept(task) && trans.__('kept until %1', timeText(task.keptUntil));
        return (
          <tr {...attributes} key={task.uid}>
            <th scope="row" title={name}>
              {name}
            </th>
            <td title={kept || undefined}>
              <StateMark trans={trans} state={task.state} /> {kept}
            </td>
            <Cell text={task.node ?? ''} />
            <Cell text={task.address ?? ''} />
            <Cell text={gpuText(task)} />
            <Cell
              text={portLines(task).join('; ')}
              title={portLines(task).join('\n')}
            />
            <Cell text={exitText(trans, task)} title={exitHelp(trans, task)} />
            <td>
              <TaskButtons {...props} task={task} />
            </td>
          </tr>
        );
      }}
      rowHeight={34}
    />
  );
}
