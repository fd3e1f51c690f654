/**
 * The plugin of the cluster's page.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  ICommandPalette,
  MainAreaWidget,
  WidgetTracker
} from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { showPage } from '../place';
import { CommandIDs, DOMAIN, IPaiClient } from '../tokens';
import { addClusterCommands } from './commands';
import { ClusterModel } from './model';
import type { ClusterPage } from './view';

/** Shows who uses the cluster and who waits, and moves waiting jobs. */
export const clusterPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:cluster',
  description: 'Shows the use of the PAI cluster, and the queue.',
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
    const tracker = new WidgetTracker<MainAreaWidget<ClusterPage>>({
      namespace: 'jupyter-pai-cluster'
    });
    const isSeen = () => tracker.find(page => page.isVisible) !== undefined;
    const model = new ClusterModel({
      client,
      rests: () => document.hidden || !isSeen()
    });
    addClusterCommands(commands, {
      client,
      model,
      trans,
      show: async () => {
        const shown = tracker.find(() => true);
        if (shown) {
          showPage(shell, labShell, shown);
          return;
        }
        const { ClusterPage } = await import('./view');
        const content = new ClusterPage({
          model,
          commands,
          translator: language
        });
        const page = new MainAreaWidget({ content });
        page.toolbar.hide();
        page.id = 'jp-pai-cluster';
        await tracker.add(page);
        showPage(shell, labShell, page);
        model.start();
      }
    });
    palette?.addItem({
      command: CommandIDs.showCluster,
      category: trans.__('PAI')
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.showCluster,
        name: () => 'cluster'
      });
    }
  }
};
