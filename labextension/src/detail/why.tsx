/**
 * Why a job waits: the reason, what would help, its place in the queue, and who has what it needs.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { inLocale } from '../language';
import type { ICap, IJobDetail, ITold, IWaiting, IWhy } from '../types';
import { exitWords, worded } from '../worded';
import { clockText, timeText } from '../words';

/** The words in the language of the page; English where there are none. */
export function toldIn(language: string, waiting: IWaiting): ITold {
  return inLocale(waiting.texts, language) ?? waiting.texts.en;
}

/** A limit with what counts against it now. */
function capText(trans: TranslationBundle, cap: ICap): string {
  const limits = [];
  if (cap.gpus !== null) {
    limits.push(trans.__('%1 of %2 GPUs', cap.runningGpus, cap.gpus));
  }
  if (cap.tasks !== null) {
    limits.push(trans.__('%1 of %2 tasks', cap.runningTasks, cap.tasks));
  }
  const whose = [cap.sweep || cap.user, cap.vc].filter(Boolean).join(', ');
  return trans.__('Limit of %1: %2 at once.', whose, limits.join(', '));
}

/** Those who have what it needs, under the words that fit the reason. */
function Holders(props: {
  trans: TranslationBundle;
  waiting: IWaiting;
}): JSX.Element {
  const { trans, waiting } = props;
  return (
    <details>
      <summary>
        {waiting.cause === 'kept'
          ? trans.__('Jobs that still run on the GPUs reserved for it')
          : trans.__('Jobs that hold what it needs')}
      </summary>
      <ul>
        {waiting.holders.map(holder => (
          <li key={holder.group}>
            {trans.__(
              '%1: %2, priority %3',
              holder.group,
              trans._n('%1 GPU', '%1 GPUs', holder.gpus),
              holder.priority
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}

function Reason(props: {
  trans: TranslationBundle;
  why: IWhy;
  waiting: IWaiting;
}): JSX.Element {
  const { trans, why, waiting } = props;
  const told = toldIn(document.documentElement.lang, waiting);
  return (
    <>
      <span>{told.sentence}</span>
      <span>{told.remedy}</span>
      <span>
        {trans.__(
          'Number %1 of %2 in the queue of %3.',
          waiting.position,
          waiting.waiting,
          waiting.vc
        )}
      </span>
      {waiting.cap && <span>{capText(trans, waiting.cap)}</span>}
      {waiting.startsAt && (
        <span>
          {trans.__(
            'Expected to start at about %1, if no new job comes first.',
            clockText(waiting.startsAt)
          )}
        </span>
      )}
      {waiting.startsAt && told.estimate && <span>{told.estimate}</span>}
      {waiting.holders.length > 0 && (
        <Holders trans={trans} waiting={waiting} />
      )}
      {!why.current && <span>{trans.__('As of %1.', timeText(why.asOf))}</span>}
    </>
  );
}

/** The note of a job that waits; nothing for one that does not. */
export function WhyNote(props: {
  trans: TranslationBundle;
  job: IJobDetail;
  why: IWhy | null;
  /** Show the queue that it stands in. */
  onQueue?: () => void;
}): JSX.Element {
  const { trans, job, why, onQueue } = props;
  const waiting = why?.waiting;
  if (!job.why && !waiting) {
    return <></>;
  }
  return (
    <div className="jp-pai-Note" data-kind="why">
      <strong>
        {job.phase === 'kept for debugging'
          ? trans.__('Why it has not ended')
          : trans.__('Why it waits')}
      </strong>
      {why && waiting ? (
        <Reason trans={trans} why={why} waiting={waiting} />
      ) : (
        <span>{worded(trans, job.why, job.whyWording)}</span>
      )}
      {onQueue && job.state === 'WAITING' && (
        <button className="jp-pai-JobLink" onClick={onQueue}>
          {trans.__('Show the queue')}
        </button>
      )}
    </div>
  );
}

/** Tasks whose exits are explained, at most. */
const EXPLAINED = 20;

/** Why the job waits, or how it ended and what to do about it. */
export function WhyTab(props: {
  trans: TranslationBundle;
  job: IJobDetail;
  why: IWhy | null;
  onQueue: () => void;
}): JSX.Element {
  const { trans, job } = props;
  const failed = job.taskRoles
    .flatMap(role => role.taskStatuses)
    .filter(task => task.exit !== null && task.exit.status !== 0);
  if (!job.exit && failed.length === 0 && !job.why) {
    return <p>{trans.__('The job neither waits nor has ended.')}</p>;
  }
  return (
    <>
      <WhyNote {...props} />
      {job.exit && (
        <div className="jp-pai-Note" data-kind="exit">
          <strong>{trans.__('Why it ended')}</strong>
          <span>{exitWords(trans, job.exit).what}</span>
          <span>{exitWords(trans, job.exit).remedy}</span>
        </div>
      )}
      {failed.slice(0, EXPLAINED).map(task => (
        <div className="jp-pai-Note" data-kind="problem" key={task.uid}>
          <strong>{`${task.role}-${task.index}`}</strong>
          <span>{task.exit && exitWords(trans, task.exit).what}</span>
          <span>{task.exit && exitWords(trans, task.exit).remedy}</span>
        </div>
      ))}
      {failed.length > EXPLAINED && (
        <p>{trans.__('%1 more tasks failed.', failed.length - EXPLAINED)}</p>
      )}
    </>
  );
}
