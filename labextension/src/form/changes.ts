/**
 * What is different between two values, as few small changes as can be seen.
 */

import type { Json, Path } from './paths';
import { isList, isObject, memberOf, same } from './paths';

/** One change; each is made to what the ones before it have left. */
export type Change =
  | { readonly kind: 'set'; readonly path: Path; readonly value: Json }
  | { readonly kind: 'insert'; readonly path: Path; readonly value: Json }
  | { readonly kind: 'remove'; readonly path: Path }
  | { readonly kind: 'rename'; readonly path: Path; readonly name: string };

/** The changes that make `after` of `before`. */
export function changesOf(
  before: Json,
  after: Json,
  path: Path = []
): Change[] {
  if (same(before, after)) {
    return [];
  }
  if (isList(before) && isList(after) && after.length > 0) {
    return changesOfLists(before, after, path);
  }
  if (isObject(before) && isObject(after) && Object.keys(after).length > 0) {
    return changesOfObjects(before, after, path);
  }
  return [{ kind: 'set', path, value: after }];
}

function changesOfObjects(before: Json, after: Json, path: Path): Change[] {
  const old = Object.keys(before as object);
  const wanted = Object.keys(after as object);
  const gone = old.filter(key => !wanted.includes(key));
  const added = wanted.filter(key => !old.includes(key));
  const changes: Change[] = [];
  const isRenamed =
    gone.length === 1 &&
    added.length === 1 &&
    old.indexOf(gone[0]) === wanted.indexOf(added[0]);
  if (isRenamed) {
    changes.push({ kind: 'rename', path: [...path, gone[0]], name: added[0] });
  } else {
    for (const key of gone) {
      changes.push({ kind: 'remove', path: [...path, key] });
    }
  }
  for (const key of wanted) {
    const from = isRenamed && key === added[0] ? gone[0] : key;
    const was = memberOf(before, from);
    const value = memberOf(after, key) as Json;
    changes.push(
      ...(was === undefined
        ? [{ kind: 'set' as const, path: [...path, key], value }]
        : changesOf(was, value, [...path, key]))
    );
  }
  return changes;
}

/** What both lists begin and end with stays; between, items are changed in place, then added or removed. */
function changesOfLists(
  before: readonly Json[],
  after: readonly Json[],
  path: Path
): Change[] {
  if (before.length === after.length) {
    return before.flatMap((each, index) =>
      changesOf(each, after[index], [...path, index])
    );
  }
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && same(before[head], after[head])) {
    head++;
  }
  let tail = 0;
  while (
    tail < shorter - head &&
    same(before[before.length - 1 - tail], after[after.length - 1 - tail])
  ) {
    tail++;
  }
  const middle = head + Math.max(0, shorter - head - tail);
  const changes: Change[] = [];
  for (let index = head; index < middle; index++) {
    changes.push(...changesOf(before[index], after[index], [...path, index]));
  }
  for (let index = before.length - tail - 1; index >= middle; index--) {
    changes.push({ kind: 'remove', path: [...path, index] });
  }
  for (let index = middle; index < after.length - tail; index++) {
    changes.push({
      kind: 'insert',
      path: [...path, index],
      value: after[index]
    });
  }
  return changes;
}
