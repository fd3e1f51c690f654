/**
 * YAML texts as trees: where each value stands, and what it means.
 *
 * The tree of the text that was read last is kept. After a change of one scalar only the lines of its item are parsed:
 * a key in the form must not cost a reading of the whole text.
 */

import type { Document, Node, Pair, YAMLMap, YAMLSeq } from 'yaml';
import {
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  parseDocument,
  visit
} from 'yaml';
import type { Json, Path } from './paths';
import { same, valueAt, withValue } from './paths';

/** A node of a text. The offsets are those of its beginning, its end, and the end of what belongs to it. */
export type Ranged = Node & { range: [number, number, number] };

/** A list or an object of a text. */
export type Collection = (YAMLMap | YAMLSeq) & {
  range: [number, number, number];
};

/** One scalar in the place of another. */
export interface IScalarChange {
  readonly path: Path;
  /** Where the old one stands. */
  readonly from: number;
  readonly to: number;
  /** What stands there now, and its value. */
  readonly by: string;
  readonly value: Json;
}

/** Most times that one text may be meant by aliases. */
const MOST_ALIASES = 100;

/** A text with its tree, and what was asked of it so far: its value, and whether its parts mean the same alone. */
interface IRead {
  readonly text: string;
  readonly document: Document;
  value?: Json;
  isPlain?: boolean;
}

/** The text that was read last. */
let last: IRead | null = null;

function reading(text: string): IRead {
  if (last?.text !== text) {
    last = { text, document: parseDocument(text) };
  }
  return last;
}

/** The document of a text; it must not be changed. It holds until another text is read. */
export function parsed(text: string): Document {
  return reading(text).document;
}

/** The value of a text, or null when it cannot be read, or is several documents. */
export function readYaml(text: string): { readonly value: Json } | null {
  const read = reading(text);
  if (read.document.errors.length > 0) {
    return null;
  }
  try {
    read.value ??= read.document.toJS({ maxAliasCount: MOST_ALIASES }) as Json;
    return { value: read.value };
  } catch {
    // Aliases without end, or too many: not a text for a form.
    return null;
  }
}

/** The name of a member, as a text. */
export function nameOf(pair: Pair): string {
  return String(isScalar(pair.key) ? pair.key.value : pair.key);
}

function itemAt(collection: unknown, step: string | number): number {
  if (isMap(collection)) {
    return collection.items.findIndex(pair => nameOf(pair) === String(step));
  }
  return isSeq(collection) && typeof step === 'number' ? step : -1;
}

/** The node at a path; names of members are compared as texts. */
export function nodeAt(document: Document, path: Path): Ranged | null {
  let node: unknown = document.contents;
  for (const step of path) {
    const index = itemAt(node, step);
    if (isMap(node)) {
      node = node.items[index]?.value;
    } else if (isSeq(node)) {
      node = node.items[index];
    } else {
      return null;
    }
  }
  return (node as Ranged | null | undefined) ?? null;
}

/** Where the line of an offset begins. */
export function lineStart(text: string, at: number): number {
  return text.lastIndexOf('\n', at - 1) + 1;
}

/** One list or object of a text whose items stand on lines of their own. */
export class Block {
  constructor(
    private readonly _text: string,
    private readonly _collection: Collection
  ) {}

  get length(): number {
    return this._collection.items.length;
  }

  /** Where an item begins: at its dash, or its key. */
  start(index: number): number {
    const { items } = this._collection;
    if (isSeq(this._collection)) {
      const item = items[index] as Ranged;
      return this._text.lastIndexOf('-', item.range[0]);
    }
    return ((items[index] as Pair).key as Ranged).range[0];
  }

  /** Behind the last line of an item. */
  end(index: number): number {
    const text = this._text;
    const item = this._collection.items[index];
    const node = isSeq(this._collection)
      ? (item as Ranged)
      : (((item as Pair).value ?? (item as Pair).key) as Ranged);
    const end = node.range[1];
    const line = text.indexOf('\n', end - (text[end - 1] === '\n' ? 1 : 0));
    return line < 0 ? text.length : line + 1;
  }

  /** Where the lines of an item begin: with it, or at the line's start where nothing is before it. */
  lines(index: number): number {
    const start = this.start(index);
    const line = lineStart(this._text, start);
    return this._text.slice(line, start).trim() === '' ? line : start;
  }

  /** The blanks before items. */
  get indent(): string {
    const start = this.start(0);
    return ' '.repeat(start - lineStart(this._text, start));
  }
}

/** The smallest item around a path that has its lines for itself; null when none has. */
function itemAround(
  { text, document }: IRead,
  path: Path
): {
  readonly depth: number;
  readonly from: number;
  readonly to: number;
} | null {
  for (let depth = path.length - 1; depth >= 0; depth--) {
    const around = nodeAt(document, path.slice(0, depth));
    if (isCollection(around) && !around.flow) {
      const block = new Block(text, around);
      const index = itemAt(around, path[depth]);
      const from = block.lines(index);
      if (from === lineStart(text, from)) {
        return { depth, from, to: block.end(index) };
      }
    }
  }
  return null;
}

/** Whether each part means the same alone: none names itself for others, takes from others, or is of a special type. */
function isPlain(document: Document): boolean {
  let found = document.errors.length === 0;
  visit(document, (_, node) => {
    if (isAlias(node) || (isNode(node) && (node.anchor || node.tag))) {
      found = false;
      return visit.BREAK;
    }
    return undefined;
  });
  return found;
}

/** Let all that ends or begins at an offset or behind it stand so many characters further on. */
function moveOn(node: unknown, from: number, by: number): void {
  if (isPair(node)) {
    moveOn(node.key, from, by);
    moveOn(node.value, from, by);
  } else if (isNode(node) && node.range && node.range[2] >= from) {
    const [start, end, rest] = node.range;
    const moved = (at: number) => (at < from ? at : at + by);
    node.range = [moved(start), moved(end), moved(rest)];
    if (isCollection(node)) {
      node.items.forEach(item => moveOn(item, from, by));
    }
  }
}

/**
 * Read a text in which one scalar of another was replaced, by its item alone; nothing where that is not certain to
 * give what reading all of it gives.
 */
export function follow(
  text: string,
  changed: string,
  { path, from, to, by, value }: IScalarChange
): void {
  const read = reading(text);
  const item = itemAround(read, path);
  read.isPlain ??= isPlain(read.document) && !/^%/m.test(text);
  if (!read.isPlain || read.value === undefined || !item) {
    return;
  }
  const more = by.length - (to - from);
  const part = parseDocument(changed.slice(item.from, item.to + more));
  const step = path[item.depth];
  const isItem = typeof step === 'number';
  const made = nodeAt(part, [isItem ? 0 : step, ...path.slice(item.depth + 1)]);
  const after = withValue(read.value, path, value);
  const wanted = valueAt(after, path.slice(0, item.depth + 1)) ?? null;
  if (
    !isScalar(made) ||
    made.range?.[0] !== from - item.from ||
    made.range[1] !== from - item.from + by.length ||
    !isPlain(part) ||
    !same(part.toJS() as Json, isItem ? [wanted] : { [step]: wanted })
  ) {
    return;
  }
  const { type, source, value: meant } = made;
  Object.assign(nodeAt(read.document, path)!, { type, source, value: meant });
  moveOn(read.document.contents, to, more);
  last = { ...read, text: changed, value: after };
}
