/**
 * Files as texts of the editor, which knows one kind of line break, and back: byte for byte where nothing was changed.
 */

/** How a text was written in its file. */
export interface IWritten {
  readonly charset: 'utf-8' | 'utf-16le' | 'utf-16be';
  readonly bom: boolean;
  readonly eol: '\n' | '\r\n' | '\r';
  /** The text with its own line breaks, which may be of several kinds. */
  readonly original: string;
}

/** A text as the editor has it, and how it was written. */
export interface IFileText {
  readonly text: string;
  readonly written: IWritten;
}

/** How a text is written that comes from no file. */
export const PLAIN: IWritten = {
  charset: 'utf-8',
  bom: false,
  eol: '\n',
  original: ''
};

function unified(text: string): string {
  return text.replace(/\r\n?/g, '\n');
}

/** A text that was read, with its own line breaks. */
export function fileText(
  original: string,
  charset: IWritten['charset'] = 'utf-8',
  bom = false
): IFileText {
  const count = (pattern: RegExp) => original.match(pattern)?.length ?? 0;
  const pairs = count(/\r\n/g);
  const returns = count(/\r(?!\n)/g);
  const feeds = count(/\n/g) - pairs;
  const eol =
    pairs > feeds && pairs >= returns ? '\r\n' : returns > feeds ? '\r' : '\n';
  return { text: unified(original), written: { charset, bom, eol, original } };
}

/** A text of the backend, as it was written: with its line breaks, and its byte order mark where it has one. */
export function sourceText(source: string): IFileText {
  const bom = source.startsWith('\ufeff');
  return fileText(bom ? source.slice(1) : source, 'utf-8', bom);
}

function decoded(
  bytes: Uint8Array,
  label: string,
  skip: number
): string | null {
  try {
    const decoder = new TextDecoder(label, { fatal: true, ignoreBOM: true });
    return decoder.decode(bytes.subarray(skip));
  } catch {
    return null;
  }
}

/** The text of a file in UTF-8, or in UTF-16 with a byte order mark; null for another encoding. */
export function decode(bytes: Uint8Array): IFileText | null {
  const [first, second, third] = bytes;
  const marks: [IWritten['charset'], number, boolean][] = [
    ['utf-16le', 2, first === 0xff && second === 0xfe],
    ['utf-16be', 2, first === 0xfe && second === 0xff],
    ['utf-8', 3, first === 0xef && second === 0xbb && third === 0xbf]
  ];
  const [charset, size] = marks.find(([, , has]) => has) ?? ['utf-8', 0];
  const text = decoded(bytes, charset, size);
  return text === null ? null : fileText(text, charset, size > 0);
}

/** The text of a file in GBK, which will be UTF-8 from now on; null for another encoding. */
export function decodeGbk(bytes: Uint8Array): IFileText | null {
  const text = decoded(bytes, 'gb18030', 0);
  return text === null ? null : fileText(text);
}

/** A text of the editor with the line breaks of its file. */
function restored(written: IWritten, text: string): string {
  return text === unified(written.original)
    ? written.original
    : text.replace(/\n/g, written.eol);
}

/** What is sent of a text: as UTF-8 it is the file, unless that was UTF-16, which the backend does not read. */
export function sentText(written: IWritten, text: string): string {
  const mark = written.bom && written.charset === 'utf-8' ? '\ufeff' : '';
  return mark + restored(written, text);
}

/** The bytes of a text in its file. */
export function encode(written: IWritten, text: string): Uint8Array {
  if (written.charset === 'utf-8') {
    return new TextEncoder().encode(sentText(written, text));
  }
  const units = (written.bom ? '\ufeff' : '') + restored(written, text);
  const view = new DataView(new ArrayBuffer(units.length * 2));
  for (let at = 0; at < units.length; at++) {
    const isLittle = written.charset === 'utf-16le';
    view.setUint16(at * 2, units.charCodeAt(at), isLittle);
  }
  return new Uint8Array(view.buffer);
}
