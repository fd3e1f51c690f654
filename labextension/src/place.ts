/**
 * Where pages are shown in the applications that load this package.
 */

import type {
  ILabShell,
  ILayoutRestorer,
  JupyterFrontEnd
} from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
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

/** Pages of one kind: one is made when it is asked for first, and found again by its name. */
export class Pages<T extends Widget> {
  /** Those that are open. */
  readonly tracker: WidgetTracker<MainAreaWidget<T>>;

  /** `kind` is the beginning of their ids and the name under which their places are remembered. */
  constructor(
    private readonly shell: JupyterFrontEnd.IShell,
    private readonly labShell: ILabShell | null,
    private readonly kind: string
  ) {
    this.tracker = new WidgetTracker({ namespace: kind });
  }

  /**
   * Put the page of that name in front, made by `make` when there is none.
   *
   * `ready` is then called with its content, and told whether it was made now.
   */
  async show(
    name: string,
    make: () => Promise<T>,
    ready?: (content: T, isNew: boolean) => void
  ): Promise<void> {
    const id = name ? `${this.kind}-${name}` : this.kind;
    const shown = this.tracker.find(each => each.id === id);
    const page = shown ?? new MainAreaWidget({ content: await make() });
    if (!shown) {
      page.toolbar.hide();
      page.id = id;
      await this.tracker.add(page);
    }
    showPage(this.shell, this.labShell, page);
    ready?.(page.content, !shown);
  }

  /** Open them again after a reload, each by this command with these arguments; `name` is that of `show`. */
  restore(
    restorer: ILayoutRestorer | null,
    command: string,
    name: (content: T) => string = () => '',
    args: (content: T) => Record<string, string> = () => ({})
  ): void {
    void restorer?.restore(this.tracker, {
      command,
      name: page => name(page.content) || this.kind,
      args: page => args(page.content)
    });
  }
}
