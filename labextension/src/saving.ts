/**
 * Files that the page makes and the browser saves.
 */

/** Have the browser save a text under a name. */
export function saveText(name: string, text: BlobPart): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
