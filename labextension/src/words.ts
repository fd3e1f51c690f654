/**
 * Words for values of the wire, in the language of the user.
 *
 * One literal call for each word, so that the catalogue can be checked for completeness.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { nullTranslator } from '@jupyterlab/translation';
import type { Missing } from './address';
import type { IProblemWords } from './error_words';
import { codeWords } from './error_words';
import { worded } from './worded';
import type { PaiError } from './problem';
import { DOMAIN } from './tokens';
import type { JobPhase, JobState } from './types';
import { isFinal } from './types';

/** A job's or task's state. */
export function stateWord(trans: TranslationBundle, state: JobState): string {
  switch (state) {
    case 'WAITING':
      return trans.__('Waiting');
    case 'RUNNING':
      return trans.__('Running');
    case 'STOPPING':
      return trans.__('Stopping');
    case 'STOPPED':
      return trans.__('Stopped');
    case 'SUCCEEDED':
      return trans.__('Succeeded');
    case 'FAILED':
      return trans.__('Failed');
  }
}

/** The finer state. */
export function phaseWord(trans: TranslationBundle, phase: JobPhase): string {
  switch (phase) {
    case 'queued':
      return trans.__('queued');
    case 'pulling':
      return trans.__('pulling the image');
    case 'starting':
      return trans.__('starting');
    case 'running':
      return trans.__('running');
    case 'backing off':
      return trans.__('waiting before the next try');
    case 'kept for debugging':
      return trans.__('kept for debugging');
    case 'stopping':
      return trans.__('stopping');
    case 'ended':
      return trans.__('ended');
  }
}

/** The phase where it says more than the state beside it; else empty. */
export function phaseBeside(
  trans: TranslationBundle,
  state: JobState,
  phase: JobPhase
): string {
  const said = isFinal(state) || phase === 'running' || phase === 'stopping';
  return said && phase !== 'kept for debugging' ? '' : phaseWord(trans, phase);
}

/** A document's dialect by the name people know it by. */
export function dialectWord(dialect: string): string {
  const names: Record<string, string> = {
    scm: 'SCM',
    qizhi: 'QIZHI',
    'openpai-v1': 'OpenPAI v1',
    'openpai-v2': 'OpenPAI v2'
  };
  return names[dialect] ?? dialect;
}

/** Why a service of a job cannot be opened from this browser, and what to run or change. */
export function missingWords(
  trans: TranslationBundle,
  job: string,
  label: string,
  missing: Missing
): string {
  if (missing.kind === 'guest') {
    return trans.__(
      'A service of another user opens at its own address only, which does not lead to the backend from here. Run this in a shell of this computer: pai forward %1 %2',
      job,
      label
    );
  }
  return [
    trans.__(
      '%1 uses addresses from the root of its host, so it does not work below the path of this Jupyter server. It needs an address of its own.',
      label
    ),
    remedyWords(trans, label, missing),
    trans.__(
      'Or run this in a shell of this computer: pai open %1 %2 --local',
      job,
      label
    )
  ].join(' ');
}

function remedyWords(
  trans: TranslationBundle,
  label: string,
  missing: Exclude<Missing, { kind: 'guest' }>
): string {
  switch (missing.kind) {
    case 'port':
      return trans.__(
        'This computer does not reach the backend. Forward its port beside that of Jupyter, then open %1 again: ssh -L %2:localhost:%2 SERVER. If the backend is not on the host of Jupyter, an administrator has to set api.service_domain.',
        label,
        missing.port
      );
    case 'domain':
      return trans.__(
        'The backend has no domain for services. Set api.service_domain in its configuration to a domain whose names all lead to it.'
      );
    case 'names':
      return trans.__(
        'Names below %1 do not lead to the backend from here. Add a wildcard DNS record: *.%1',
        missing.domain
      );
  }
}

/** English, which the backend's own sentences are in. */
export const ENGLISH = { trans: nullTranslator.load(DOMAIN) };

/** A hint that is for a shell or a program. */
const FOR_PROGRAMS = /curl|Authorization|[Hh]eader|`|\bpai [a-z]/;

/**
 * What went wrong and what to do. In English the backend says it best, with the names of what it is about, unless its
 * remedy is for programs, and so it does in a language whose catalogue has its sentence. Otherwise the panel says it, and
 * the sentence follows as the detail.
 */
export function problemWords(
  trans: TranslationBundle,
  problem: PaiError
): IProblemWords {
  const { code, message, hint } = problem;
  const words = codeWords(trans, code);
  const what = words?.what ?? trans.__('The request failed.');
  const english = codeWords(ENGLISH.trans, code)?.what ?? 'The request failed.';
  const isEnglish = what === english;
  const said = worded(trans, message, problem.wording);
  const remedy = FOR_PROGRAMS.test(hint)
    ? ''
    : worded(trans, hint, problem.hintWording);
  // Where the catalogue has the backend's own sentence, it says more than the words for its code.
  const isWorded = isEnglish || said !== message;
  return {
    what: isWorded ? said || what : [what, message].join(' ').trim(),
    remedy: isWorded ? remedy || (words?.remedy ?? '') : words?.remedy || remedy
  };
}

/** A time of the wire as the page's language writes it; empty for none. */
export function timeText(time: string | null): string {
  const language = document.documentElement.lang.replace('_', '-');
  return time ? new Date(time).toLocaleString(language || undefined) : '';
}

/** Whether what is shown is pushed as it happens. */
export function liveWord(trans: TranslationBundle, live: boolean): string {
  return live ? trans.__('Live') : trans.__('Reconnecting…');
}

/** A time of the wire without its seconds; without its date too, when that is today's. */
export function clockText(time: string): string {
  const language = document.documentElement.lang.replace('_', '-') || undefined;
  const at = new Date(time);
  const clock = at.toLocaleTimeString(language, {
    hour: '2-digit',
    minute: '2-digit'
  });
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? clock : `${at.toLocaleDateString(language)} ${clock}`;
}

/** How long something took, in the two largest units. */
export function duration(trans: TranslationBundle, ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (days > 0) {
    return trans.__('%1 d %2 h', days, hours % 24);
  }
  if (hours > 0) {
    return trans.__('%1 h %2 min', hours, minutes % 60);
  }
  if (minutes > 0) {
    return trans.__('%1 min %2 s', minutes, seconds % 60);
  }
  return trans.__('%1 s', seconds);
}
