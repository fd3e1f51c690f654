/**
 * Why a job waits: the reason, what would help, its place in the queue, and who has what it needs.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { IJobDetail, ITold, IWaiting, IWhy } from '../types';
import { timeText } from '../words';

/** The words in the language of the page; English where there are none. */
export function toldIn(language: string, waiting: IWaiting): ITold {
  return waiting.texts[language.replace('-', '_')] ?? waiting.texts.en;
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
      {waiting.starts_at && (
        <span>
          {trans.__('Expected to start: %1', timeText(waiting.starts_at))}
        </span>
      )}
      {waiting.holders.length > 0 && (
        <details>
          <summary>{trans.__('Who has what it needs')}</summary>
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
}): JSX.Element {
  const { trans, job, why } = props;
  const waiting = why?.waiting;
  if (!job.why && !waiting) {
    return <></>;
  }
  return (
    <div className="jp-pai-Note" data-kind="why">
      <strong>
        {job.phase === 'kept for debugging'
          ? trans.__('Why it is not over')
          : trans.__('Why it waits')}
      </strong>
      {why && waiting ? (
        <Reason trans={trans} why={why} waiting={waiting} />
      ) : (
        <span>{job.why}</span>
      )}
    </div>
  );
}
