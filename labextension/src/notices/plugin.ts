/**
 * The plugin of the page of notifications.
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
import { addNotificationCommands } from './commands';
import { NotificationsModel } from './model';
import type { NotificationsPage } from './view';

/** Shows where messages about the user's jobs go, and changes that. */
export const noticesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:notices',
  description: "Shows where messages about the user's jobs go.",
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
    const language = translator ?? nullTranslator;
    const trans = language.load(DOMAIN);
    const { commands, shell } = app;
    const pages = new Pages<NotificationsPage>(
      shell,
      labShell,
      'jp-pai-notices'
    );
    const isSeen = () =>
      pages.tracker.find(page => page.isVisible) !== undefined;
    const model = new NotificationsModel(
      client,
      () => document.hidden || !isSeen()
    );
    addNotificationCommands(commands, {
      client,
      model,
      trans,
      show: () =>
        pages.show(
          '',
          async () => {
            const { NotificationsPage } = await import('./view');
            return new NotificationsPage({
              model,
              commands,
              translator: language
            });
          },
          (_, isNew) => isNew && model.start()
        )
    });
    for (const command of [
      CommandIDs.showNotifications,
      CommandIDs.addNotification
    ]) {
      palette?.addItem({ command, category: trans.__('PAI') });
    }
    pages.restore(restorer, CommandIDs.showNotifications);
  }
};
