/**
 * The plugin of submission pages.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  ICommandPalette,
  type MainAreaWidget,
  WidgetTracker
} from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { Schemas } from '../form/model';
import { showPage } from '../place';
import { reportProblem } from '../feedback';
import { openedPath, selectedPath } from '../front_files';
import { addOutput } from '../output/plugin';
import {
  CommandIDs,
  DOMAIN,
  FORM_MIME,
  IJobListModel,
  IPaiClient
} from '../tokens';
import { addTemplateCards } from './launcher';
import type { ISubmitCommandOptions } from './commands';
import { addSubmitCommands, submitDocument } from './commands';
import { importFile } from './importing';
import type { DocumentModel } from './model';
import { saveDocument } from './saving';
import type { DocumentPage } from './view';

/** Let the user choose a folder of the Jupyter server, and send it for a document; null when that was not done. */
async function sendFolder(
  files: IFileBrowserFactory,
  trans: TranslationBundle,
  document: DocumentModel
): Promise<string | null> {
  const { FileDialog } = await import('@jupyterlab/filebrowser');
  const manager = files.tracker.currentWidget?.model.manager;
  if (!manager) {
    return null;
  }
  const chosen = await FileDialog.getExistingDirectory({
    manager,
    title: trans.__('Send a folder along')
  });
  const folder = chosen.value?.[0];
  if (!folder) {
    return null;
  }
  try {
    return await document.sendFolder(folder.path);
  } catch (reason) {
    reportProblem(trans, reason);
    return null;
  }
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
    CommandIDs.cloneJob,
    CommandIDs.saveDocument,
    CommandIDs.saveTemplate,
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
    IFileBrowserFactory,
    ILayoutRestorer,
    IRenderMimeRegistry
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
    files: IFileBrowserFactory | null,
    restorer: ILayoutRestorer | null,
    rendermime: IRenderMimeRegistry | null
  ): void => {
    const language = translator ?? nullTranslator;
    const trans = language.load(DOMAIN);
    const { commands, shell, serviceManager } = app;
    const tracker = new WidgetTracker<MainAreaWidget<DocumentPage>>({
      namespace: 'jupyter-pai-document'
    });
    let schemas: Schemas | null = null;
    /** A document and its form; `isDrafted` as in the document's model. */
    const models = async (isDrafted: boolean) => {
      const [{ DocumentModel }, { FormModel, Schemas }] = await Promise.all([
        import('./model'),
        import('../form/model')
      ]);
      schemas ??= new Schemas(client);
      const document = new DocumentModel(client, { isDrafted });
      return { document, form: new FormModel(document, client, schemas) };
    };
    const common = {
      sendFolder:
        files &&
        ((document: DocumentModel) => sendFolder(files, trans, document)),
      browseStorage: async (path: string) => {
        const { choosePath } = await import('../files/choosing');
        return choosePath(client, trans, path);
      },
      commands,
      editorServices,
      translator: language
    };
    const open = async (): Promise<DocumentModel> => {
      const [{ DocumentPage }, { DocumentMain }, { document: model, form }] =
        await Promise.all([
          import('./view'),
          import('./closing'),
          models(true)
        ]);
      const content = new DocumentPage({
        ...common,
        model,
        form,
        take: file => importFile(options, file)
      });
      const page = new DocumentMain(content, trans, () =>
        saveDocument(options, model)
      );
      page.toolbar.hide();
      await tracker.add(page);
      model.changed.connect(() => void tracker.save(page));
      showPage(shell, labShell, page);
      return model;
    };
    const options: ISubmitCommandOptions = {
      client,
      model: jobs,
      trans,
      current: () => tracker.currentWidget?.content.model ?? null,
      open,
      chooseFile: async () => (await import('./file')).chooseFile(),
      textOf: async (file, name) => {
        const { bytesOfFile, textOfBytes } = await import('./file');
        const isOfHere = file instanceof File;
        const bytes = isOfHere ? await bytesOfFile(trans, file) : file;
        return textOfBytes(trans, bytes, name);
      },
      selectedPath: () => selectedPath(files),
      openedPath: () => openedPath(shell),
      readFile: async path =>
        (await import('./file')).readFile(serviceManager.contents, path),
      writeFile: async (path, bytes) =>
        (await import('./file')).writeFile(serviceManager.contents, path, bytes)
    };
    addSubmitCommands(commands, options);
    void restorer?.restore(tracker, {
      command: CommandIDs.newJob,
      name: page => page.content.model.draft,
      args: ({ content: { model } }) => ({
        draft: model.draft,
        filename: model.state.filename,
        path: model.state.file?.path ?? '',
        changed: model.state.file?.changed ?? '',
        folder: model.state.folder?.path ?? '',
        codeDir: model.state.folder?.codeDir ?? ''
      })
    });
    if (rendermime) {
      addOutput(rendermime, FORM_MIME, async () => {
        const [{ FormOutputView }, made] = await Promise.all([
          import('../output/form'),
          models(false)
        ]);
        return new FormOutputView({
          ...common,
          ...made,
          submit: document => submitDocument(options, document)
        });
      });
    }
    addEntries(trans, palette, launcher);
    if (launcher) {
      const { languageCode } = language;
      addTemplateCards(launcher, client, jobs, trans, languageCode);
    }
  }
};
