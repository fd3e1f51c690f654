/**
 * Files that the page makes and the browser saves.
 */

/** Have the browser save a text under a name; `type` is its media type. */
export function saveText(
  name: string,
  text: BlobPart,
  type = 'text/plain'
): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
