/**
 * Which files of the Jupyter server commands act on.
 */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IFileBrowserFactory } from '@jupyterlab/filebrowser';

/** The first selected item of the Jupyter file browser. */
export function selectedPath(files: IFileBrowserFactory | null): string | null {
  const items = files?.tracker.currentWidget?.selectedItems();
  return items ? ([...items][0]?.path ?? null) : null;
}

/** The path of the document in front. */
export function openedPath(shell: JupyterFrontEnd.IShell): string | null {
  const page = shell.currentWidget as { context?: { path?: string } } | null;
  return page?.context?.path ?? null;
}
