/**
 * Changes of a value as changes of its YAML text: comments, order, quotes and layout stay.
 *
 * A change replaces the fewest lines that hold what is changed. The caller compares what the new text means: what
 * this cannot do well (anchors, unusual block scalars) is then refused, and the text is left as it is.
 */

import {
  Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  Scalar,
  visit
} from 'yaml';
import type { Change } from './changes';
import type { Json, Path } from './paths';
import { isScalarValue } from './paths';
import type { Collection, Ranged } from './yaml_tree';
import { Block, follow, lineStart, nameOf, nodeAt, parsed } from './yaml_tree';

export { readYaml } from './yaml_tree';

/** Where the value at a path stands. */
export function yamlRange(
  text: string,
  path: Path
): readonly [number, number] | null {
  const node = nodeAt(parsed(text), path);
  return node ? [node.range[0], node.range[1]] : null;
}

/** The path of what stands at an offset: of the innermost value that holds it. */
export function yamlPath(text: string, offset: number): Path {
  let found: Path = [];
  const document = parsed(text);
  const look = (node: unknown, path: Path): void => {
    if (isMap(node)) {
      for (const pair of node.items) {
        const key = pair.key as Ranged;
        const value = pair.value as Ranged | null;
        const end = value?.range?.[2] ?? key.range?.[2] ?? 0;
        if (key.range && offset >= key.range[0] && offset <= end) {
          found = [...path, nameOf(pair)];
          look(value, found);
        }
      }
    } else if (isSeq(node)) {
      node.items.forEach((item, index) => {
        const range = (item as Ranged).range;
        if (range && offset >= range[0] && offset <= range[2]) {
          found = [...path, index];
          look(item, found);
        }
      });
    }
  };
  look(document.contents, []);
  return found;
}

/** A value as YAML; words that other readers take for something else are quoted. */
function written(value: unknown): string {
  const text = new Document(value, { compat: 'yaml-1.1' }).toString({
    lineWidth: 0
  });
  return text.trimEnd();
}

/** A value as YAML in one line. */
function inOneLine(value: Json): string {
  const document = new Document(value);
  visit(document, {
    Collection: (_, node) => {
      node.flow = true;
    }
  });
  return document.toString({ lineWidth: 0 }).trimEnd();
}

function put(text: string, from: number, to: number, by: string): string {
  return text.slice(0, from) + by + text.slice(to);
}

function indented(block: string, indent: string): string {
  const lines = block.split('\n');
  return lines
    .map((line, number) => (number > 0 && line ? indent + line : line))
    .join('\n');
}

/** The text with another scalar in the place of one, in its way of writing; null where that is not possible. */
function changeScalar(text: string, path: Path, value: Json): string | null {
  const node = nodeAt(parsed(text), path);
  if (!isScalar(node) || node.anchor || !(node as Ranged).range) {
    return null;
  }
  const [from, to] = (node as Ranged).range;
  const isBlock = node.type?.startsWith('BLOCK');
  if (
    isBlock ||
    to <= from ||
    !isScalarValue(value) ||
    String(value).includes('\n')
  ) {
    return null;
  }
  const scalar = new Scalar(value);
  scalar.type = typeof value === 'string' ? node.type : 'PLAIN';
  const by = written(scalar);
  const changed = put(text, from, to, by);
  follow(text, changed, { path, from, to, by, value });
  return changed;
}

/** The text with `value` at the path, undefined to remove it; `isNew` puts it before what stands there. */
function change(
  text: string,
  path: Path,
  value: Json | undefined,
  isNew: boolean
): string {
  const document = parsed(text);
  if (path.length === 0) {
    return written(value) + '\n';
  }
  const above = path.slice(0, -1);
  const key = path[path.length - 1];
  const parent = nodeAt(document, above);
  if (!isNew && value !== undefined) {
    const changed = changeScalar(text, path, value);
    if (changed !== null) {
      return changed;
    }
  }
  if (!isCollection(parent)) {
    const inner = typeof key === 'number' ? [value ?? null] : { [key]: value };
    return change(text, above, inner as Json, false);
  }
  const around = parent;
  if (around.flow || around.items.length === 0) {
    return changeWhole(text, above, around, key, value, isNew);
  }
  if (value === undefined && around.items.length === 1) {
    return change(text, above, isSeq(around) ? [] : {}, false);
  }
  return (
    changeBlock(text, around, key, value, isNew) ??
    changeWhole(text, above, around, key, value, isNew)
  );
}

/** Write the list or object around the change again. */
function changeWhole(
  text: string,
  above: Path,
  around: Collection,
  key: string | number,
  value: Json | undefined,
  isNew: boolean
): string {
  const whole = around.toJSON() as Json[] | Record<string, Json>;
  if (Array.isArray(whole)) {
    const put_ = value === undefined ? [] : [value];
    whole.splice(Number(key), isNew ? 0 : 1, ...put_);
  } else if (value === undefined) {
    delete whole[key];
  } else {
    whole[key] = value;
  }
  if (!around.flow) {
    return change(text, above, whole, false);
  }
  const [from, to] = around.range;
  return put(text, from, to, inOneLine(whole));
}

/** Write, add or remove the lines of one item; null where they are not its own. */
function changeBlock(
  text: string,
  around: Collection,
  key: string | number,
  value: Json | undefined,
  isNew: boolean
): string | null {
  const block = new Block(text, around);
  const index = isSeq(around)
    ? Number(key)
    : around.items.findIndex(pair => nameOf(pair) === String(key));
  const exists = !isNew && index >= 0 && index < block.length;
  if (value === undefined) {
    if (!exists || block.lines(index) === block.start(index)) {
      const isFirstInLine =
        exists && block.start(index) === lineStart(text, block.start(index));
      return isFirstInLine
        ? put(text, block.start(index), block.end(index), '')
        : null;
    }
    return put(text, block.lines(index), block.end(index), '');
  }
  const item = written(isSeq(around) ? [value] : { [key]: value });
  const lines = indented(item, block.indent) + '\n';
  if (exists) {
    return put(text, block.start(index), block.end(index), lines);
  }
  const at = isSeq(around) ? Math.min(index, block.length) : block.length;
  if (at === 0) {
    return put(text, block.start(0), block.start(0), lines + block.indent);
  }
  const end = at < block.length ? block.lines(at) : block.end(at - 1);
  const line = (text[end - 1] === '\n' ? '' : '\n') + block.indent + lines;
  return put(text, end, end, line);
}

/** The text with one change made. Throws when there is no such place. */
export function changeYaml(text: string, made: Change): string {
  switch (made.kind) {
    case 'rename':
      return rename(text, made.path, made.name);
    case 'remove':
      return change(text, made.path, undefined, false);
    default:
      return change(text, made.path, made.value, made.kind === 'insert');
  }
}

function rename(text: string, path: Path, name: string): string {
  const parent = nodeAt(parsed(text), path.slice(0, -1));
  const old = String(path[path.length - 1]);
  const key = isMap(parent)
    ? parent.items.find(pair => nameOf(pair) === old)?.key
    : undefined;
  if (!isScalar(key) || isAlias(key) || !key.range) {
    throw new Error('no such member');
  }
  return put(text, key.range[0], key.range[1], written(new Scalar(name)));
}

/** The text with an item of a list or object and the one behind it in each other's places. */
export function swapYaml(text: string, path: Path, index: number): string {
  const around = nodeAt(parsed(text), path);
  if (!isCollection(around) || around.flow) {
    throw new Error('no lines of their own');
  }
  const block = new Block(text, around);
  if (index < 0 || index + 1 >= block.length) {
    throw new Error('no such items');
  }
  // What stands between the two, comments too, belongs to the second.
  const [first, second] = [block.lines(index), block.end(index)];
  const end = block.end(index + 1);
  if (first === block.start(index) && first !== lineStart(text, first)) {
    throw new Error('the first item shares its line');
  }
  const one = text.slice(first, second);
  let other = text.slice(second, end);
  if (!other.endsWith('\n')) {
    other += '\n';
  }
  return text.slice(0, first) + other + one + text.slice(end);
}
