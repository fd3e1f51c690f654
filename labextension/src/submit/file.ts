/**
 * Files of the user's computer and of the Jupyter server, as texts.
 */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IFileText } from './encoding';
import { decode, decodeGbk } from './encoding';

/** No document, and more than an editor bears, in bytes. The backend's own limit is lower and its to judge. */
const MOST_BYTES = 16 * 1024 * 1024;

/** A file cannot be a job document; the message says why. */
export class NoDocument extends Error {}

/** Show the browser's file dialog; null when nothing was chosen. Call it while a click is handled. */
export async function chooseFile(): Promise<File | null> {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = '.json,.yaml,.yml,application/json';
  return new Promise(resolve => {
    input.addEventListener('change', () => resolve(input.files?.[0] ?? null));
    input.addEventListener('cancel', () => resolve(null));
    input.click();
  });
}

/** Ask whether a file in GBK is to be converted. */
async function mayConvert(
  trans: TranslationBundle,
  name: string
): Promise<boolean> {
  const { button } = await showDialog({
    title: trans.__('Convert the file to UTF-8?'),
    body: trans.__(
      '%1 is not UTF-8; it can be read as GBK. Job documents are UTF-8. The file itself stays as it is until you save it.',
      name
    ),
    buttons: [
      Dialog.cancelButton(),
      Dialog.okButton({ label: trans.__('Convert') })
    ]
  });
  return button.accept;
}

/** The text of a file; null when the user does not want it converted. Throws {@link NoDocument}. */
export async function textOfBytes(
  trans: TranslationBundle,
  bytes: Uint8Array,
  name: string
): Promise<IFileText | null> {
  if (bytes.length > MOST_BYTES) {
    throw new NoDocument(
      trans.__('This file is too large to be a job document.')
    );
  }
  const found = decode(bytes);
  if (found) {
    return found;
  }
  const converted = decodeGbk(bytes);
  if (!converted) {
    throw new NoDocument(
      trans.__('%1 is not a text in UTF-8, UTF-16 or GBK.', name)
    );
  }
  return (await mayConvert(trans, name)) ? converted : null;
}

/** The bytes of a file of the user's computer. Throws {@link NoDocument} before reading one that is too large. */
export async function bytesOfFile(
  trans: TranslationBundle,
  file: File
): Promise<Uint8Array> {
  if (file.size > MOST_BYTES) {
    throw new NoDocument(
      trans.__('This file is too large to be a job document.')
    );
  }
  return new Uint8Array(await file.arrayBuffer());
}

/** The bytes of a file of the Jupyter server, and when it was changed. Rejects as the contents manager does. */
export async function readFile(
  contents: Contents.IManager,
  path: string
): Promise<{ readonly bytes: Uint8Array; readonly changed: string }> {
  const file = await contents.get(path, {
    type: 'file',
    format: 'base64',
    content: true
  });
  const units = atob(String(file.content).replace(/\s/g, ''));
  const bytes = Uint8Array.from(units, unit => unit.charCodeAt(0));
  return { bytes, changed: file.last_modified };
}

/** Write a file of the Jupyter server; when it was changed then. Rejects as the contents manager does. */
export async function writeFile(
  contents: Contents.IManager,
  path: string,
  bytes: Uint8Array
): Promise<string> {
  const units = Array.from(bytes, byte => String.fromCharCode(byte)).join('');
  const content = btoa(units);
  const saved = await contents.save(path, {
    type: 'file',
    format: 'base64',
    content
  });
  return saved.last_modified;
}
