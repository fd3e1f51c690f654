/**
 * What commands tell the user about their outcome.
 */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { asPaiError } from './problem';
import { problemWords } from './words';

/** Say what went wrong and what to do about it. */
export function reportProblem(trans: TranslationBundle, reason: unknown): void {
  const { what, remedy } = problemWords(trans, asPaiError(reason));
  Notification.error(remedy ? `${what}\n${remedy}` : what, {
    autoClose: false
  });
}
