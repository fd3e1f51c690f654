/**
 * Places in a document's value: paths, and what stands there.
 */

/** What JSON and YAML documents hold. */
export type Json =
  null | boolean | number | string | readonly Json[] | IJsonObject;

/** An object of a document. */
export interface IJsonObject {
  readonly [key: string]: Json;
}

/** From the root to a place: names of members and indexes of items. */
export type Path = readonly (string | number)[];

/** A scalar as text; empty for null and for all that has parts. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'boolean'
    ? String(value)
    : '';
}

/** Whether it is an object with members. */
export function isObject(value: unknown): value is IJsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** Whether it is a list. */
export function isList(value: unknown): value is readonly Json[] {
  return Array.isArray(value);
}

/** Whether it has no parts. */
export function isScalarValue(
  value: Json
): value is null | boolean | number | string {
  return value === null || typeof value !== 'object';
}

/** A member that is the object's own; undefined for all else. */
export function memberOf(
  value: Json | undefined,
  key: string | number
): Json | undefined {
  if (isList(value)) {
    return typeof key === 'number' ? value[key] : undefined;
  }
  return isObject(value) && Object.prototype.hasOwnProperty.call(value, key)
    ? value[key]
    : undefined;
}

/** What stands at a path; undefined where nothing does. */
export function valueAt(value: Json | undefined, path: Path): Json | undefined {
  return path.reduce<Json | undefined>(memberOf, value);
}

/** Whether two values are the same; the order of members does not matter. */
export function same(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) {
    return true;
  }
  if (isList(one) && isList(other)) {
    return (
      one.length === other.length &&
      one.every((each, index) => same(each, other[index]))
    );
  }
  if (isObject(one) && isObject(other)) {
    const keys = Object.keys(one);
    return (
      keys.length === Object.keys(other).length &&
      keys.every(
        key =>
          memberOf(other, key) !== undefined &&
          same(one[key], memberOf(other, key))
      )
    );
  }
  return false;
}

/** An object of these members, whatever their names. */
export function objectOf(
  entries: Iterable<readonly [string, Json]>
): IJsonObject {
  return Object.fromEntries(entries);
}

/** The value with another one at a path; objects on the way are made. */
export function withValue(
  value: Json | undefined,
  path: Path,
  put: Json
): Json {
  if (path.length === 0) {
    return put;
  }
  const [key, ...rest] = path;
  const inner = withValue(memberOf(value, key), rest, put);
  if (typeof key === 'number') {
    const items = isList(value) ? [...value] : [];
    items[key] = inner;
    return items;
  }
  const entries = isObject(value) ? Object.entries(value) : [];
  const known = entries.some(([name]) => name === key);
  const put_ = entries.map(
    ([name, each]) => [name, name === key ? inner : each] as const
  );
  return objectOf(known ? put_ : [...entries, [key, inner] as const]);
}

const STEP = /\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/gy;

/** The path of a fault as the wire writes it (`$.taskRoles[0].gpuNumber`); as far as it can be read. */
export function pathOf(text: string): Path {
  const path: (string | number)[] = [];
  STEP.lastIndex = text.startsWith('$') ? 1 : 0;
  for (let found = STEP.exec(text); found; found = STEP.exec(text)) {
    const [, name, index, quoted] = found;
    if (name !== undefined) {
      path.push(name);
    } else {
      path.push(
        index !== undefined ? Number(index) : (JSON.parse(quoted) as string)
      );
    }
  }
  return path;
}
