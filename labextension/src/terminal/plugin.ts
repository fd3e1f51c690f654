/**
 * The plugin of terminals in tasks.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import type { MainAreaWidget } from '@jupyterlab/apputils';
import {
  ICommandPalette,
  IThemeManager,
  WidgetTracker
} from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { showPage } from '../place';
import type { ITerminalPlace } from '../tokens';
import { CommandIDs, DOMAIN, IJobListModel, IPaiClient } from '../tokens';
import { addTerminals } from './commands';
import type { TerminalPage } from './view';

const OPTIONS_OF_LAB = '@jupyterlab/terminal-extension:plugin';

/** The same words for the same terminal. */
function keyOf(place: ITerminalPlace): string {
  return [place.job, place.role, place.index, place.name].join('/');
}

/** What the user has set for the terminals of JupyterLab; nothing where these are not installed. */
async function optionsOfLab(
  settings: ISettingRegistry | null
): Promise<Record<string, unknown>> {
  try {
    return { ...(await settings?.load(OPTIONS_OF_LAB))?.composite };
  } catch {
    // The plugin is disabled, or this is Notebook: the defaults will do.
    return {};
  }
}

/** Opens terminals in tasks and keeps them over reloads. */
export const terminalPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:terminal',
  description: 'Opens terminals in the tasks of PAI jobs.',
  autoStart: true,
  requires: [IPaiClient, IJobListModel],
  optional: [
    ILabShell,
    ITranslator,
    ICommandPalette,
    ILauncher,
    ILayoutRestorer,
    ISettingRegistry,
    IThemeManager
  ],
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    jobs: IJobListModel,
    labShell: ILabShell | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    restorer: ILayoutRestorer | null,
    settings: ISettingRegistry | null,
    themes: IThemeManager | null
  ): void => {
    const language = translator ?? nullTranslator;
    const trans = language.load(DOMAIN);
    const tracker = new WidgetTracker<MainAreaWidget<TerminalPage>>({
      namespace: 'jupyter-pai-terminal'
    });
    addTerminals(app.commands, {
      client,
      jobs,
      trans,
      show: async (place, start) => {
        const key = keyOf(place);
        const shown = tracker.find(page => keyOf(page.content.place) === key);
        if (shown && !shown.content.connection.hasEnded) {
          showPage(app.shell, labShell, shown);
          return;
        }
        shown?.dispose();
        const { newTerminal } = await import('./view');
        const page = newTerminal({
          client,
          commands: app.commands,
          options: await optionsOfLab(settings),
          place,
          serverSettings: app.serviceManager.serverSettings,
          start,
          translator: language
        });
        page.id = `jp-pai-terminal-${encodeURIComponent(key)}`;
        await tracker.add(page);
        showPage(app.shell, labShell, page);
      }
    });
    themes?.themeChanged.connect(() =>
      tracker.forEach(page => page.content.followTheme())
    );
    palette?.addItem({
      command: CommandIDs.openTerminal,
      category: trans.__('PAI')
    });
    launcher?.add({
      command: CommandIDs.openTerminal,
      args: { isLauncher: true },
      category: trans.__('PAI')
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openTerminal,
        args: page => ({ ...page.content.place }),
        name: page => keyOf(page.content.place)
      });
    }
  }
};
