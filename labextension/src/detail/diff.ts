/**
 * Lines that two texts have in common, and those that only one of them has.
 */

/** A line, and whether it was removed, added or is in both. */
export interface IDiffLine {
  readonly mark: '-' | '+' | ' ';
  readonly text: string;
}

/** Changed lines on one side, at most: the table of the comparison has their product. */
export const MAX_CHANGED = 3000;

/** How to come from `before` to `after`; null when too much of them differs to compare. */
export function diffLines(before: string, after: string): IDiffLine[] | null {
  const a = before.split(/\r?\n/);
  const b = after.split(/\r?\n/);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) {
    head++;
  }
  let tail = 0;
  const rest = Math.min(a.length, b.length) - head;
  while (tail < rest && a[a.length - 1 - tail] === b[b.length - 1 - tail]) {
    tail++;
  }
  const old = a.slice(head, a.length - tail);
  const now = b.slice(head, b.length - tail);
  if (old.length > MAX_CHANGED || now.length > MAX_CHANGED) {
    return null;
  }
  const same = (lines: string[]) =>
    lines.map((text): IDiffLine => ({ mark: ' ', text }));
  return [
    ...same(a.slice(0, head)),
    ...changed(old, now),
    ...same(a.slice(a.length - tail))
  ];
}

/** By the longest common subsequence. */
function changed(old: string[], now: string[]): IDiffLine[] {
  const width = now.length + 1;
  const longest = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const at = i * width + j;
      longest[at] =
        old[i] === now[j]
          ? longest[at + width + 1] + 1
          : Math.max(longest[at + width], longest[at + 1]);
    }
  }
  const lines: IDiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    const at = i * width + j;
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push({ mark: ' ', text: old[i++] });
      j++;
    } else if (
      j >= now.length ||
      (i < old.length && longest[at + width] >= longest[at + 1])
    ) {
      lines.push({ mark: '-', text: old[i++] });
    } else {
      lines.push({ mark: '+', text: now[j++] });
    }
  }
  return lines;
}
