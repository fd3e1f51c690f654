/**
 * The plugin of the sidebar and of the commands on jobs.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  Clipboard,
  createToolbarFactory,
  ICommandPalette,
  IToolbarWidgetRegistry,
  setToolbar
} from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { CommandIDs, DOMAIN, IJobListModel, IPaiClient } from '../tokens';
import { addJobCommands } from './commands';
import { JobListModel } from './model';
import { JobsPanel } from './view';

/** The plugin whose settings hold menus, shortcuts and the toolbar. */
const PLUGIN_ID = 'jupyter-pai:plugin';

/** Provides {@link IJobListModel} and shows it in the left sidebar. */
export const jobsPlugin: JupyterFrontEndPlugin<IJobListModel> = {
  id: PLUGIN_ID,
  description: 'Lists PAI jobs in the sidebar and acts on them.',
  autoStart: true,
  requires: [IPaiClient],
  optional: [
    ILabShell,
    ITranslator,
    ICommandPalette,
    ILayoutRestorer,
    ISettingRegistry,
    IToolbarWidgetRegistry
  ],
  provides: IJobListModel,
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    labShell: ILabShell | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    settings: ISettingRegistry | null,
    toolbars: IToolbarWidgetRegistry | null
  ): IJobListModel => {
    const language = translator ?? nullTranslator;
    const trans = language.load(DOMAIN);
    const { commands } = app;
    const model: JobListModel = new JobListModel({
      client,
      // Without the panel, too, once the backend was asked: status bar, table and pages follow this list. Before that, a
      // JupyterLab in which PAI was not used starts no private backend.
      standby: () =>
        document.hidden || (!panel.isVisible && !model.state.loaded)
    });
    const panel: JobsPanel = new JobsPanel({
      model,
      commands,
      translator: language
    });
    addJobCommands(commands, {
      client,
      model,
      trans,
      showJobs: () => app.shell.activateById(panel.id),
      copy: text => Clipboard.copyToSystem(text),
      openTab: () => window.open('', '_blank')
    });
    if (settings && toolbars) {
      setToolbar(
        panel,
        createToolbarFactory(toolbars, settings, 'PaiJobs', PLUGIN_ID, language)
      );
    }
    app.shell.add(panel, 'left', { rank: 250, type: 'PAI' });
    restorer?.add(panel, panel.id);
    for (const command of [
      CommandIDs.showJobs,
      CommandIDs.refresh,
      CommandIDs.openJob,
      CommandIDs.openService,
      CommandIDs.copySsh,
      CommandIDs.stopJob,
      CommandIDs.restartJob,
      CommandIDs.deleteJob,
      CommandIDs.releaseJob
    ]) {
      palette?.addItem({ command, category: trans.__('PAI') });
    }
    void app.restored.then(() => model.start());
    return model;
  }
};
