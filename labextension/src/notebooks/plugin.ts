/**
 * The plugin of notebooks and programs that run as jobs.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { openedPath, selectedPath } from '../front_files';
import { DOMAIN, IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import type { INotebookInFront } from './commands';
import { addNotebookCommands } from './commands';
import type { INotebookCell } from './form';

/** As much of a page with a notebook as is used here: the page itself is the application's. */
interface INotebookPage {
  readonly context?: {
    readonly path: string;
    readonly ready: Promise<void>;
    readonly save: () => Promise<void>;
    readonly model: { readonly toJSON: () => unknown };
  };
  readonly content?: {
    activeCellIndex?: number;
    readonly scrollToItem?: (index: number, align?: string) => Promise<void>;
  };
}

/** The notebook of a page; null for another page. */
function notebookOf(page: INotebookPage | null): INotebookInFront | null {
  const context = page?.context;
  if (!context?.path.endsWith('.ipynb') || !page?.content?.scrollToItem) {
    return null;
  }
  return {
    path: context.path,
    cells: () =>
      (context.model.toJSON() as { cells: INotebookCell[] }).cells ?? [],
    save: () => context.save()
  };
}

/** Runs notebooks and programs as jobs. */
export const notebooksPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:notebooks',
  description: 'Runs notebooks and programs as PAI jobs.',
  autoStart: true,
  requires: [IPaiClient],
  optional: [ITranslator, ICommandPalette, IFileBrowserFactory],
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    files: IFileBrowserFactory | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const { commands, shell } = app;
    addNotebookCommands(commands, {
      client,
      trans,
      current: () => notebookOf(shell.currentWidget as INotebookPage | null),
      program: isOpened => (isOpened ? openedPath(shell) : selectedPath(files)),
      open: async (path, cell) => {
        const page = (await commands.execute('docmanager:open', {
          path,
          factory: 'Notebook'
        })) as INotebookPage | undefined;
        if (cell !== null && page?.content) {
          await page.context?.ready;
          page.content.activeCellIndex = cell;
          await page.content.scrollToItem?.(cell, 'start');
        }
      }
    });
    palette?.addItem({
      command: CommandIDs.runNotebook,
      category: trans.__('PAI')
    });
    shell.currentChanged?.connect(() =>
      commands.notifyCommandChanged(CommandIDs.runNotebook)
    );
  }
};
