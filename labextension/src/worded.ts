/**
 * What the backend says, in the language of the page.
 *
 * A text comes in English, and beside it the template and the arguments that it was made of. The catalogue has the
 * templates; where it lacks one, for the backend may be of another version, the English text stays.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IProblemWords } from './error_words';
import type { ITaskExit, IWording } from './types';

const PLACE = /\{(\w+)\}/g;

function filled(
  trans: TranslationBundle,
  template: string,
  values: IWording['arguments']
): string {
  return template.replace(PLACE, (place, name: string) => {
    const value = Object.prototype.hasOwnProperty.call(values, name)
      ? values[name]
      : place;
    return typeof value === 'string'
      ? value
      : (translated(trans, value) ??
          filled(trans, value.template, value.arguments));
  });
}

function translated(
  trans: TranslationBundle,
  wording: IWording
): string | null {
  // eslint-disable-next-line jupyter/no-dynamic-translation -- the literal is in the backend, where a test reads it
  const template = trans.__(wording.template);
  return template === wording.template
    ? null
    : filled(trans, template, wording.arguments);
}

/** The text in the language of the page; `english` where the catalogue does not have it. */
export function worded(
  trans: TranslationBundle,
  english: string,
  wording?: IWording | null
): string {
  return (wording && translated(trans, wording)) ?? english;
}

/** What has a message and a hint: a fault, a warning. */
interface IWorded {
  readonly message: string;
  readonly hint: string;
  readonly wording?: IWording | null;
  readonly hintWording?: IWording | null;
}

/** The same with its message and its hint in the language of the page. */
export function inWords<T extends IWorded>(
  trans: TranslationBundle,
  said: T
): T {
  return {
    ...said,
    message: worded(trans, said.message, said.wording),
    hint: worded(trans, said.hint, said.hintWording)
  };
}

/** What an end means and what to do: of a task, or of a job. A remedy has no arguments, so it is its own template. */
export function exitWords(
  trans: TranslationBundle,
  exit: Pick<ITaskExit, 'message' | 'remedy'> & {
    readonly wording?: IWording | null;
  }
): IProblemWords {
  const { message, remedy, wording } = exit;
  return {
    what: worded(trans, message, wording),
    remedy: worded(trans, remedy, { template: remedy, arguments: {} })
  };
}
