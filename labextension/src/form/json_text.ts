/**
 * Changes of a value as changes of its JSON text: comments, order and layout stay.
 */

import type { Node, ParseError } from 'jsonc-parser';
import {
  applyEdits,
  findNodeAtLocation,
  getLocation,
  getNodeValue,
  modify,
  parseTree
} from 'jsonc-parser';
import type { Change } from './changes';
import type { Json, Path } from './paths';
import { isScalarValue } from './paths';

/** The text that was parsed last, and what it means where it can be read. */
let last: {
  readonly text: string;
  readonly root: Node | undefined;
  readonly found: { readonly value: Json } | null;
} | null = null;

/** A text as a tree. A key in the form asks several times for the same two texts. */
function parsed(text: string): NonNullable<typeof last> {
  if (last?.text !== text) {
    const errors: ParseError[] = [];
    const root = parseTree(text, errors, { allowTrailingComma: true });
    const isRead = root && errors.length === 0;
    const found = isRead ? { value: getNodeValue(root) as Json } : null;
    last = { text, root, found };
  }
  return last;
}

/** The value of a text, or null when it cannot be read. */
export function readJson(text: string): { readonly value: Json } | null {
  return parsed(text).found;
}

function nodeAt(text: string, path: Path): Node | undefined {
  const { root } = parsed(text);
  return root && findNodeAtLocation(root, [...path]);
}

/** Where the value at a path stands. */
export function jsonRange(
  text: string,
  path: Path
): readonly [number, number] | null {
  const node = nodeAt(text, path);
  return node ? [node.offset, node.offset + node.length] : null;
}

/** The path of what stands at an offset. */
export function jsonPath(text: string, offset: number): Path {
  return getLocation(text, offset).path.filter(step => step !== '');
}

/** How the text is indented. */
function layoutOf(text: string): {
  insertSpaces: boolean;
  tabSize: number;
  eol: string;
} {
  const indent = /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ';
  const insertSpaces = !indent.startsWith('\t');
  return { insertSpaces, tabSize: insertSpaces ? indent.length : 1, eol: '\n' };
}

/** The text with one change made. Throws when there is no such place. */
export function changeJson(text: string, change: Change): string {
  if (change.kind === 'rename') {
    const key = nodeAt(text, change.path)?.parent?.children?.[0];
    if (!key) {
      throw new Error('no such member');
    }
    const end = key.offset + key.length;
    return (
      text.slice(0, key.offset) + JSON.stringify(change.name) + text.slice(end)
    );
  }
  if (change.kind === 'set') {
    const node = nodeAt(text, change.path);
    const isScalar = node && !node.children && isScalarValue(change.value);
    if (isScalar) {
      const end = node.offset + node.length;
      const by = JSON.stringify(change.value);
      return text.slice(0, node.offset) + by + text.slice(end);
    }
  }
  const value = change.kind === 'remove' ? undefined : change.value;
  const edits = modify(text, [...change.path], value, {
    isArrayInsertion: change.kind === 'insert',
    formattingOptions: layoutOf(text)
  });
  return applyEdits(text, edits);
}

/** The text with an item of a list or object and the one behind it in each other's places. */
export function swapJson(text: string, path: Path, index: number): string {
  const items = nodeAt(text, path)?.children ?? [];
  const [first, second] = [items[index], items[index + 1]];
  if (!first || !second) {
    throw new Error('no such items');
  }
  const [a, b] = [first.offset, first.offset + first.length];
  const [c, d] = [second.offset, second.offset + second.length];
  return (
    text.slice(0, a) +
    text.slice(c, d) +
    text.slice(b, c) +
    text.slice(a, b) +
    text.slice(d)
  );
}
