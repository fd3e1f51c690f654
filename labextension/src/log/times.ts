/**
 * The time before each line of a log.
 */

import type { ILogTime } from '../types';

/** Times that are kept of one log. */
const MOST = 100_000;

/** A line, or the rest of one, with what ends it. */
const LINE = /[^\r\n]*(?:\r\n|[\r\n]|$)/g;

const two = (value: number): string => String(value).padStart(2, '0');

/** A time as it stands before a line: month, day and time of day, in the zone of the browser. */
export function timeWord(at: string): string {
  const time = new Date(at);
  const day = `${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()];
  return `${day} ${clock.map(two).join(':')} `;
}

const UNKNOWN = ' '.repeat(timeWord('2026-11-29T12:00:00Z').length);

/** How many bytes a text has in UTF-8. */
export function bytesIn(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** When the bytes of one log came, as far as it was asked for. */
export class LogTimes {
  /** Take over when some bytes came. */
  learn(times: readonly ILogTime[]): void {
    let isSorted = true;
    for (const { offset, at } of times) {
      if (!this._words.has(offset)) {
        isSorted &&= offset > (this._offsets[this._offsets.length - 1] ?? -1);
        this._offsets.push(offset);
      }
      this._words.set(offset, timeWord(at));
    }
    if (!isSorted) {
      this._offsets.sort((one, other) => one - other);
    }
    for (const offset of this._offsets.splice(0, this._words.size - MOST)) {
      this._words.delete(offset);
    }
  }

  /** The time of a byte; spaces where it is not known. */
  word(offset: number): string {
    let low = 0;
    let high = this._offsets.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this._offsets[middle] <= offset) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return this._words.get(this._offsets[low - 1]) ?? UNKNOWN;
  }

  private _offsets: number[] = [];
  private readonly _words = new Map<number, string>();
}

/** Puts times before the lines of a text that comes in pieces, one behind the other. */
export class LineStamper {
  /** `start`: the offset of the first byte. */
  constructor(
    private readonly _times: LogTimes,
    start: number
  ) {
    this._offset = start;
  }

  /** The next piece. A progress bar, which goes back to the beginning of its line, gets a time whenever it does. */
  stamped(text: string): string {
    const found: string[] = [];
    for (const [line] of text.matchAll(LINE)) {
      if (line === '') {
        continue;
      }
      if (this._begins && !(this._returned && line === '\n')) {
        found.push(this._times.word(this._offset));
      }
      found.push(line);
      this._returned = line.endsWith('\r');
      this._begins = this._returned || line.endsWith('\n');
      this._offset += bytesIn(line);
    }
    return found.join('');
  }

  private _begins = true;
  private _offset: number;
  private _returned = false;
}
