/**
 * The plugin of the page of files.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Pages } from '../place';
import { CommandIDs, DOMAIN, IPaiClient } from '../tokens';
import type { IFilesOptions } from './commands';
import { addFilesCommands, uploadFiles } from './commands';
import { FilesModel } from './model';
import type { IFileActions } from './table';
import type { FilesView } from './view';

/** Shows the files of the backend's storage, and uploads to it. */
export const filesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:files',
  description: "Shows the files of PAI's storage, and uploads to it.",
  autoStart: true,
  requires: [IPaiClient],
  optional: [ILabShell, ITranslator, ICommandPalette, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    labShell: ILabShell | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const { commands, shell } = app;
    const pages = new Pages<FilesView>(shell, labShell, 'jp-pai-files');
    const model = new FilesModel(client);
    const actions: IFileActions = {
      upload: (files, hasFolders) =>
        void uploadFiles(options, files, hasFolders),
      chooseUploads: () => void commands.execute(CommandIDs.uploadFiles),
      newFolder: () => void commands.execute(CommandIDs.newFolder),
      remove: path => void commands.execute(CommandIDs.deleteFile, { path })
    };
    const options: IFilesOptions = {
      model,
      trans,
      show: async path => {
        await pages.show('', async () => {
          const { FilesView } = await import('./view');
          return new FilesView({ model, trans, actions });
        });
        const wanted = path || model.state.path;
        await (wanted ? model.open(wanted) : model.openHome());
      }
    };
    addFilesCommands(commands, options);
    palette?.addItem({
      command: CommandIDs.showFiles,
      category: trans.__('PAI')
    });
    let shown = '';
    model.changed.connect(() => {
      const page = pages.tracker.currentWidget;
      if (page && model.state.path !== shown) {
        shown = model.state.path;
        void pages.tracker.save(page);
        commands.notifyCommandChanged();
      }
    });
    pages.restore(
      restorer,
      CommandIDs.showFiles,
      () => '',
      () => ({ path: model.state.path })
    );
  }
};
