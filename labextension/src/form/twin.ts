/**
 * A document as text and as value: each change of the value is a small change of the text.
 */

import type { Change } from './changes';
import { changesOf } from './changes';
import {
  changeJson,
  jsonPath,
  jsonRange,
  readJson,
  swapJson
} from './json_text';
import type { Json, Path } from './paths';
import { isList, isObject, objectOf, same, valueAt, withValue } from './paths';
import {
  changeYaml,
  readYaml,
  swapYaml,
  yamlPath,
  yamlRange
} from './yaml_text';

/** How a document is written. */
export type Notation = 'json' | 'yaml';

/** Above this many characters no form is offered: reading the text at every key would be felt. */
export const LARGEST_TEXT = 100_000;

/** The change cannot be made in the text without touching what is not changed. */
export class NotFaithful extends Error {}

/** How a text is written: JSON begins with a bracket or comment, YAML does not. */
export function notationOf(text: string, filename: string): Notation {
  if (/\.ya?ml$/i.test(filename)) {
    return 'yaml';
  }
  const isJson = text.trim() === '' || /^\s*([{[]|\/\/|\/\*)/.test(text);
  return isJson ? 'json' : 'yaml';
}

/** The value of a text, or null when it cannot be read as one document. */
export function read(
  notation: Notation,
  text: string
): { readonly value: Json } | null {
  return notation === 'yaml' ? readYaml(text) : readJson(text);
}

function proved(notation: Notation, text: string, value: Json): string {
  const found = read(notation, text);
  if (found === null || !same(found.value, value)) {
    throw new NotFaithful();
  }
  return text;
}

/** The text, which means `before`, changed to mean `after`. Throws {@link NotFaithful}. */
export function edited(
  notation: Notation,
  text: string,
  before: Json,
  after: Json
): string {
  const change = (was: string, made: Change): string => {
    try {
      return notation === 'yaml'
        ? changeYaml(was, made)
        : changeJson(was, made);
    } catch (reason) {
      throw new NotFaithful(String(reason));
    }
  };
  return proved(notation, changesOf(before, after).reduce(change, text), after);
}

/** The value with an item of a list or object and the one behind it in each other's places. */
export function swapped(value: Json, path: Path, index: number): Json {
  const around = valueAt(value, path);
  const exchange = <T>(items: readonly T[]): T[] => {
    const found = [...items];
    [found[index], found[index + 1]] = [found[index + 1], found[index]];
    return found;
  };
  if (isList(around)) {
    return withValue(value, path, exchange(around));
  }
  return isObject(around)
    ? withValue(value, path, objectOf(exchange(Object.entries(around))))
    : value;
}

/** The text with these two items exchanged, and their comments. Throws {@link NotFaithful}. */
export function swappedText(
  notation: Notation,
  text: string,
  value: Json,
  path: Path,
  index: number
): string {
  const after = swapped(value, path, index);
  try {
    const swap = notation === 'yaml' ? swapYaml : swapJson;
    return proved(notation, swap(text, path, index), after);
  } catch {
    // Items that share lines with others are written again.
    return edited(notation, text, value, after);
  }
}

/** Where the value at a path stands in the text; null where nothing does. */
export function rangeOf(
  notation: Notation,
  text: string,
  path: Path
): readonly [number, number] | null {
  return notation === 'yaml' ? yamlRange(text, path) : jsonRange(text, path);
}

/** The path of what stands at an offset of the text. */
export function pathAt(notation: Notation, text: string, offset: number): Path {
  return notation === 'yaml' ? yamlPath(text, offset) : jsonPath(text, offset);
}
