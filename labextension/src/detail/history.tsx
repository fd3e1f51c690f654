/**
 * What has happened to a job, and how every run of its tasks ended.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { StateMark } from '../components';
import type { ILogTarget } from '../tokens';
import { exitWords, worded } from '../worded';
import type {
  IAttempt,
  IJobEvent,
  ITask,
  IWording,
  JobPhase,
  JobState
} from '../types';
import { WindowedTable } from '../windowed';
import { duration, phaseBeside, stateWord, timeText } from '../words';
import { Cell, exitHelp, exitText } from './tasks';

/** What an event of a job says; its type for one that is unknown here. */
export function eventWords(trans: TranslationBundle, event: IJobEvent): string {
  const { payload, type } = event;
  const said = (name: string) => {
    const value = payload[name];
    const wording = payload[name === 'message' ? 'wording' : `${name}Wording`];
    return typeof value === 'string' || typeof value === 'number'
      ? worded(trans, String(value), wording as IWording | undefined)
      : '';
  };
  const joined = (...parts: string[]) => parts.filter(Boolean).join(' · ');
  switch (type) {
    case 'job.submitted':
      return trans.__('Submitted by %1', said('user'));
    case 'job.state': {
      const state = said('state') as JobState;
      return joined(
        stateWord(trans, state),
        phaseBeside(trans, state, said('phase') as JobPhase),
        said('why')
      );
    }
    case 'job.exit':
      return joined(
        trans.__('Ended'),
        said('message'),
        exitWords(trans, { message: '', remedy: said('remedy') }).remedy
      );
    case 'job.retry':
      return joined(
        trans.__('Attempt %1 begins', Number(payload.attempt) + 1),
        said('reason')
      );
    case 'job.stop-requested':
      return joined(trans.__('Asked to stop'), said('by'), said('reason'));
    case 'job.restart-requested':
      return trans.__('Restarted by %1', said('by'));
    case 'job.moved':
      return trans.__(
        'Moved in the queue from place %1 to %2',
        said('was'),
        said('place')
      );
    case 'job.gpus-idle':
      return trans.__(
        '%1 GPUs did nothing for %2',
        Number(payload.gpus),
        duration(trans, Number(payload.idleS) * 1000)
      );
    case 'job.budget':
    case 'job.underused':
    case 'job.ending-soon':
      return said('text');
    case 'job.underused-over':
      return trans.__('Its GPUs work again');
    default:
      return joined(type, said('reason'));
  }
}

/** Events in order, each with its time. */
function Timeline(props: {
  trans: TranslationBundle;
  events: readonly IJobEvent[];
}): JSX.Element {
  const { trans, events } = props;
  return (
    <ol aria-label={trans.__('Timeline')} className="jp-pai-Timeline">
      {events.map(event => (
        <li data-type={event.type} key={event.seq}>
          <time dateTime={event.at}>{timeText(event.at)}</time>
          <span>{eventWords(trans, event)}</span>
        </li>
      ))}
    </ol>
  );
}

/** How long a run lasted, or has lasted; empty before its start. */
function lasted(trans: TranslationBundle, run: ITask): string {
  if (!run.startedTime) {
    return '';
  }
  const end = run.completedTime ? Date.parse(run.completedTime) : Date.now();
  return duration(trans, end - Date.parse(run.startedTime));
}

/** All runs of all attempts, the latest attempt first. */
function Runs(props: {
  trans: TranslationBundle;
  attempts: readonly IAttempt[];
  onLog: (target: ILogTarget) => void;
}): JSX.Element {
  const { trans, attempts, onLog } = props;
  const rows = React.useMemo(
    () =>
      attempts.flatMap(({ number, runs }) =>
        runs.map(run => ({ number, run }))
      ),
    [attempts]
  );
  return (
    <WindowedTable
      columns={[
        { id: 'attempt', head: trans.__('Attempt'), width: 70 },
        { id: 'task', head: trans.__('Task'), width: 120 },
        { id: 'run', head: trans.__('Run'), width: 50 },
        { id: 'state', head: trans.__('State'), width: 110 },
        { id: 'node', head: trans.__('Node'), width: 110 },
        { id: 'started', head: trans.__('Started'), width: 160 },
        { id: 'lasted', head: trans.__('Ran for'), width: 90 },
        { id: 'exit', head: trans.__('Exit'), width: 110 },
        { id: 'log', head: trans.__('Log'), width: 60 },
        { id: 'meaning', head: trans.__('What to do'), width: 260 }
      ]}
      count={rows.length}
      label={trans.__('Runs')}
      row={(place, attributes) => {
        const { number, run } = rows[place];
        const { role, index, attempt } = run;
        const name = `${role}-${index}`;
        const words = run.exit && exitWords(trans, run.exit);
        return (
          <tr {...attributes} key={run.uid}>
            <Cell text={String(number + 1)} />
            <th scope="row">{name}</th>
            <Cell text={String(attempt + 1)} />
            <td>
              <StateMark trans={trans} state={run.state} />
            </td>
            <Cell text={run.node ?? ''} />
            <Cell text={timeText(run.startedTime)} />
            <Cell text={lasted(trans, run)} />
            <Cell text={exitText(trans, run)} title={exitHelp(trans, run)} />
            <td>
              {run.startedTime && (
                <button
                  aria-label={trans.__(
                    'Show the log of run %1 of %2',
                    attempt + 1,
                    name
                  )}
                  className="jp-pai-JobLink"
                  onClick={() => onLog({ role, index, attempt, stream: 'all' })}
                >
                  {trans.__('Log')}
                </button>
              )}
            </td>
            <Cell
              text={words?.remedy || words?.what || ''}
              title={exitHelp(trans, run)}
            />
          </tr>
        );
      }}
      rowHeight={34}
    />
  );
}

/** The history of a job; `attempts` are null until they are known. */
export function History(props: {
  trans: TranslationBundle;
  attempts: readonly IAttempt[] | null;
  timeline: readonly IJobEvent[];
  onLog: (target: ILogTarget) => void;
}): JSX.Element {
  const { trans, attempts, timeline, onLog } = props;
  if (attempts === null) {
    return <p>{trans.__('Loading…')}</p>;
  }
  return (
    <>
      <h3>{trans.__('Timeline')}</h3>
      <Timeline events={timeline} trans={trans} />
      <h3>{trans.__('Runs')}</h3>
      <Runs attempts={attempts} onLog={onLog} trans={trans} />
    </>
  );
}
