/**
 * What commands tell the user about their outcome.
 */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { asPaiError } from './problem';
import { problemWords } from './words';

/** Do something, and say it when that fails. Never rejects. */
export async function reported(
  trans: TranslationBundle,
  work: Promise<void>
): Promise<void> {
  try {
    await work;
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

/** Say what went wrong and what to do about it. */
export function reportProblem(trans: TranslationBundle, reason: unknown): void {
  const { what, remedy } = problemWords(trans, asPaiError(reason));
  Notification.error(remedy ? `${what}\n${remedy}` : what, {
    autoClose: false
  });
}
