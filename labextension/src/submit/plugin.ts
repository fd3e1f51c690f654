/**
 * The plugin of submission pages.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell } from '@jupyterlab/application';
import {
  ICommandPalette,
  MainAreaWidget,
  WidgetTracker
} from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { Schemas } from '../form/model';
import { showPage } from '../place';
import { CommandIDs, DOMAIN, IJobListModel, IPaiClient } from '../tokens';
import { addSubmitCommands } from './commands';
import type { DocumentModel } from './model';
import type { DocumentPage } from './view';

/** The text of a file of the Jupyter server. Rejects as the contents manager does. */
async function readFile(
  contents: Contents.IManager,
  path: string
): Promise<string> {
  const file = await contents.get(path, {
    type: 'file',
    format: 'text',
    content: true
  });
  return String(file.content);
}

/** The first selected item of the Jupyter file browser. */
function selectedPath(files: IFileBrowserFactory | null): string | null {
  const items = files?.tracker.currentWidget?.selectedItems();
  return items ? ([...items][0]?.path ?? null) : null;
}

/** Let the user choose a folder of the Jupyter server; its path on that machine's disk is the user's to complete. */
async function chooseFolder(
  files: IFileBrowserFactory,
  trans: TranslationBundle
): Promise<string | null> {
  const { FileDialog } = await import('@jupyterlab/filebrowser');
  const manager = files.tracker.currentWidget?.model.manager;
  if (!manager) {
    return null;
  }
  const chosen = await FileDialog.getExistingDirectory({
    manager,
    title: trans.__('Choose a folder')
  });
  return chosen.value?.[0]?.path ?? null;
}

function addEntries(
  trans: TranslationBundle,
  palette: ICommandPalette | null,
  launcher: ILauncher | null
): void {
  const category = trans.__('PAI');
  for (const command of [
    CommandIDs.newJob,
    CommandIDs.importFile,
    CommandIDs.submit
  ]) {
    palette?.addItem({ command, category });
  }
  launcher?.add({
    command: CommandIDs.newJob,
    args: { launcher: true },
    category
  });
}

/** Opens pages for documents on their way to become jobs. */
export const submitPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:submit',
  description: 'Submits PAI job documents by import, paste or typing.',
  autoStart: true,
  requires: [IPaiClient, IJobListModel, IEditorServices],
  optional: [
    ILabShell,
    ITranslator,
    ICommandPalette,
    ILauncher,
    IFileBrowserFactory
  ],
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    jobs: IJobListModel,
    editorServices: IEditorServices,
    labShell: ILabShell | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    files: IFileBrowserFactory | null
  ): void => {
    const language = translator ?? nullTranslator;
    const trans = language.load(DOMAIN);
    const { commands, shell, serviceManager } = app;
    const tracker = new WidgetTracker<MainAreaWidget<DocumentPage>>({
      namespace: 'jupyter-pai-document'
    });
    let schemas: Schemas | null = null;
    const open = async (): Promise<DocumentModel> => {
      const [{ DocumentPage }, { DocumentModel }, { FormModel, Schemas }] =
        await Promise.all([
          import('./view'),
          import('./model'),
          import('../form/model')
        ]);
      schemas ??= new Schemas(client);
      const model = new DocumentModel(client);
      const content = new DocumentPage({
        model,
        form: new FormModel(model, client, schemas),
        browse: files && (() => chooseFolder(files, trans)),
        commands,
        editorServices,
        translator: language
      });
      const page = new MainAreaWidget({ content });
      page.toolbar.hide();
      await tracker.add(page);
      showPage(shell, labShell, page);
      return model;
    };
    addSubmitCommands(commands, {
      model: jobs,
      trans,
      current: () => tracker.currentWidget?.content.model ?? null,
      open,
      chooseFile: async () =>
        (await import('./file')).chooseFile(
          trans.__('This file is too large to be a job document.')
        ),
      selectedPath: () => selectedPath(files),
      readFile: path => readFile(serviceManager.contents, path)
    });
    addEntries(trans, palette, launcher);
  }
};
