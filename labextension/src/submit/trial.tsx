/**
 * What would become of the document now, and what would let it start.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { FormModel } from '../form/model';
import type { IRemedy } from '../form/remedies';
import { remedied, remedyOf } from '../form/remedies';
import { inLocale } from '../language';
import type { ITold, ITrial } from '../types';
import { clockText } from '../words';

/** The answer in one line. */
export function trialLine(trans: TranslationBundle, trial: ITrial): string {
  const at = trial.waiting?.startsAt;
  switch (trial.outcome) {
    case 'starts':
      return trans.__('It starts now.');
    case 'waits':
      return at
        ? trans.__('It waits, until about %1.', clockText(at))
        : trans.__('It waits.');
    case 'never':
      return trans.__('It never starts on these machines.');
    default:
      return '';
  }
}

/** Why, in the user's language. */
export function whyOf(trial: ITrial, language: string): ITold | null {
  return inLocale(trial.waiting?.texts, language) ?? null;
}

/** The answer with its reason, and a button for each remedy. */
export function TrialNote(props: {
  trans: TranslationBundle;
  language: string;
  trial: ITrial;
  form: FormModel;
}): JSX.Element | null {
  const { trans, language, trial, form } = props;
  if (trial.outcome === null) {
    return null;
  }
  const { value, dialect } = form.state;
  const told = whyOf(trial, language);
  const remedies = (trial.waiting?.changes ?? [])
    .map(change => value && remedyOf(trans, value, dialect, change))
    .filter((each): each is IRemedy => each !== null);
  return (
    <div
      aria-live="polite"
      className="jp-pai-Document-trial"
      data-outcome={trial.outcome}
    >
      <strong>{trialLine(trans, trial)}</strong>
      {trial.held && <span>{trial.held}</span>}
      {told && <span>{told.sentence}</span>}
      {told && remedies.length === 0 && <em>{told.remedy}</em>}
      {remedies.map(remedy => (
        <button
          className="jp-mod-styled"
          key={remedy.label}
          onClick={() => value && form.set(remedied(value, remedy))}
          type="button"
        >
          {remedy.label}
        </button>
      ))}
    </div>
  );
}
