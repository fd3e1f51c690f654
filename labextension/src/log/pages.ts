/**
 * Pieces of a log that begin and end with whole lines, or at least with whole characters.
 */

/** A piece: `end` is the offset behind its last byte. */
export interface ILogPiece {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const NEWLINE = 0x0a;

/** Whether a byte continues a character of UTF-8. */
function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** How many bytes at the beginning belong to a line, or at least a character, that began before. */
export function brokenHead(bytes: Uint8Array): number {
  const line = bytes.indexOf(NEWLINE) + 1;
  if (line > 0 && line < bytes.length) {
    return line;
  }
  const first = bytes.findIndex(byte => !isContinuation(byte));
  return first < 0 ? bytes.length : first;
}

/** How many bytes are left without a line, or at least a character, that goes on behind them. */
export function wholeBytes(bytes: Uint8Array): number {
  const line = bytes.lastIndexOf(NEWLINE) + 1;
  if (line > 0) {
    return line;
  }
  let last = bytes.length - 1;
  while (last > 0 && isContinuation(bytes[last])) {
    last--;
  }
  return last > 0 ? last : bytes.length;
}

/** The piece that bytes from `offset` on make; what is broken at its ends is left out where that is asked for. */
export function pieceOf(
  bytes: ArrayBuffer,
  offset: number,
  cut: { head: boolean; tail: boolean }
): ILogPiece {
  let shown = new Uint8Array(bytes);
  const head = cut.head ? brokenHead(shown) : 0;
  shown = shown.subarray(head);
  if (cut.tail) {
    shown = shown.subarray(0, wholeBytes(shown));
  }
  const start = offset + head;
  return {
    start,
    end: start + shown.length,
    text: new TextDecoder().decode(shown)
  };
}
