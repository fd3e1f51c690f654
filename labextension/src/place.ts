/**
 * Where pages are shown in the applications that load this package.
 */

import type { ILabShell, JupyterFrontEnd } from '@jupyterlab/application';
import { TabPanel, type Widget } from '@lumino/widgets';

/**
 * Put a page in front, adding it to the application when it is not there yet.
 *
 * JupyterLab has its main area for pages. Notebook 7 keeps that for the notebook, so there they go to
 * the lower area, whose tabs it does not change when a page is activated.
 */
export function showPage(
  shell: JupyterFrontEnd.IShell,
  labShell: ILabShell | null,
  page: Widget
): void {
  if (!page.isAttached) {
    shell.add(page, labShell ? 'main' : 'down', { type: 'PAI' });
  }
  shell.activateById(page.id);
  for (let around = page.parent; around; around = around.parent) {
    if (!labShell && around instanceof TabPanel) {
      around.currentWidget = page;
    }
  }
}
