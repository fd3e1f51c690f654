/**
 * Choosing a file of the user's computer.
 */

import type { IChosenFile } from './commands';

/** No document, and more than an editor bears, in bytes. The backend's own limit is lower and its to judge. */
const MOST_BYTES = 16 * 1024 * 1024;

/** A chosen file is too large to be a job document. */
export class FileTooLarge extends Error {}

/**
 * Show the browser's file dialog and read what was chosen; null when nothing was.
 *
 * Call it while a click is handled: browsers refuse it otherwise. Throws {@link FileTooLarge}
 * before reading, with `message` as text.
 */
export async function chooseFile(message: string): Promise<IChosenFile | null> {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = '.json,.yaml,.yml,application/json';
  const file = await new Promise<File | null>(resolve => {
    input.addEventListener('change', () => resolve(input.files?.[0] ?? null));
    input.addEventListener('cancel', () => resolve(null));
    input.click();
  });
  if (file && file.size > MOST_BYTES) {
    throw new FileTooLarge(message);
  }
  return file && { name: file.name, text: await file.text() };
}
