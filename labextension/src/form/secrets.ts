/**
 * Where the values of secrets stand in a document. The backend masks the same ones.
 */

import type { Json, Path } from './paths';
import { isList, isObject, memberOf } from './paths';
import type { Notation } from './twin';
import { LARGEST_TEXT, rangeOf, read } from './twin';

const SECRET_NAME =
  /PASSWORD|PASSWD|PASSPHRASE|PWD|TOKEN|SECRET|CREDENTIAL|KEY/i;

function leavesOf(value: Json | undefined, path: Path): Path[] {
  if (isList(value)) {
    return value.flatMap((each, index) => leavesOf(each, [...path, index]));
  }
  if (isObject(value)) {
    return Object.entries(value).flatMap(([name, each]) =>
      leavesOf(each, [...path, name])
    );
  }
  return value === undefined || value === null || value === '' ? [] : [path];
}

/** The paths of all values that are secret. */
export function secretPaths(value: Json): Path[] {
  const variables = memberOf(value, 'jobEnvs');
  const named = isObject(variables)
    ? Object.entries(variables).filter(([name]) => SECRET_NAME.test(name))
    : [];
  const needed = memberOf(value, 'prerequisites');
  return [
    ...leavesOf(memberOf(value, 'secrets'), ['secrets']),
    ...named.flatMap(([name, each]) => leavesOf(each, ['jobEnvs', name])),
    ...(isList(needed) ? needed : []).flatMap((each, index) =>
      leavesOf(memberOf(memberOf(each, 'auth') ?? null, 'password'), [
        'prerequisites',
        index,
        'auth',
        'password'
      ])
    )
  ];
}

/** Where they stand in a text; null when it cannot be read now. */
export function secretRanges(
  notation: Notation,
  text: string
): (readonly [number, number])[] | null {
  const found = text.length <= LARGEST_TEXT ? read(notation, text) : null;
  return (
    found &&
    secretPaths(found.value)
      .map(path => rangeOf(notation, text, path))
      .filter(range => range !== null)
  );
}
