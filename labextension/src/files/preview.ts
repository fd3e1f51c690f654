/**
 * What of a file can be shown in the page, by its name and its first bytes.
 */

import type { PaiError } from '../problem';
import type { IPaiClient } from '../tokens';

/** Bytes of a text that are shown. */
export const TEXT_BYTES = 256 * 1024;

/** Bytes of an image at most: the page holds all of it. */
export const IMAGE_BYTES = 32 * 1024 * 1024;

/** Share of control characters above which bytes are no text. */
const MOST_CONTROLS = 0.02;

/** Images that browsers show; an SVG in an `<img>` runs no script and loads nothing. */
const IMAGES: Readonly<Record<string, string>> = {
  gif: 'image/gif',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  png: 'image/png',
  svg: 'image/svg+xml',
  webp: 'image/webp'
};

/** What is shown of a file. */
export type Shown =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly problem: PaiError }
  | { readonly kind: 'text'; readonly text: string; readonly isCut: boolean }
  | { readonly kind: 'image'; readonly image: Blob }
  | { readonly kind: 'large' }
  | { readonly kind: 'other' };

/** A file that is looked at. */
export interface IPreview {
  readonly path: string;
  readonly name: string;
  readonly size: number;
  readonly modified: string | null;
  readonly shown: Shown;
}

/** The ending of a name without its dot, in lower case; empty when it has none. */
export function endingOf(name: string): string {
  return /[^.]\.([A-Za-z0-9]+)$/.exec(name)?.[1].toLowerCase() ?? '';
}

/** Whether bytes are of a text: control characters are rare in one, and NUL is in none. */
export function isText(bytes: Uint8Array): boolean {
  let controls = 0;
  for (const byte of bytes) {
    if (byte === 0) {
      return false;
    }
    // Tab, line ends, form feed, and the escape of coloured output are of texts.
    const isOfText = (byte >= 8 && byte <= 13) || byte === 27 || byte >= 32;
    controls += isOfText ? 0 : 1;
  }
  return controls <= bytes.length * MOST_CONTROLS;
}

/** UTF-8 as text; what is not is replaced, and a character that the end cuts is left out. */
export function textFrom(bytes: Uint8Array, isCut: boolean): string {
  return new TextDecoder().decode(bytes, { stream: isCut });
}

/** Read what can be shown of a file. Rejects with PaiError. */
export async function previewOf(
  client: IPaiClient,
  path: string,
  name: string
): Promise<IPreview> {
  const media = IMAGES[endingOf(name)];
  // Of an image first its size: one that is too large is not fetched.
  const first = await client.readFile(path, media ? 0 : TEXT_BYTES);
  const { size, modified } = first;
  const about = { path, name, size, modified };
  if (media && size > IMAGE_BYTES) {
    return { ...about, shown: { kind: 'large' } };
  }
  if (media) {
    const { bytes } = await client.readFile(path, size);
    const image = new Blob([bytes], { type: media });
    return { ...about, shown: { kind: 'image', image } };
  }
  const bytes = new Uint8Array(first.bytes);
  if (!isText(bytes)) {
    return { ...about, shown: { kind: 'other' } };
  }
  const isCut = size > bytes.length;
  const text = textFrom(bytes, isCut);
  return { ...about, shown: { kind: 'text', text, isCut } };
}
