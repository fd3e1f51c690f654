/**
 * The plugin of the cluster's page.
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
    const pages = new Pages<ClusterPage>(shell, labShell, 'jp-pai-cluster');
    const isSeen = () =>
      pages.tracker.find(page => page.isVisible) !== undefined;
    const model = new ClusterModel({
      client,
      rests: () => document.hidden || !isSeen()
    });
    addClusterCommands(commands, {
      client,
      model,
      trans,
      show: () =>
        pages.show(
          '',
          async () => {
            const { ClusterPage } = await import('./view');
            return new ClusterPage({ model, commands, translator: language });
          },
          (_, isNew) => isNew && model.start()
        )
    });
    palette?.addItem({
      command: CommandIDs.showCluster,
      category: trans.__('PAI')
    });
    pages.restore(restorer, CommandIDs.showCluster);
  }
};
