/**
 * The plugin of the page of usage.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { usageIcon } from '../icons';
import { Pages } from '../place';
import { CommandIDs, DOMAIN, IPaiClient } from '../tokens';
import { UsageModel } from './model';
import type { UsagePage } from './view';

/** Shows what was used when, by whom and at what price, and the budgets. */
export const usagePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:usage',
  description:
    'Shows the GPU and CPU hours of PAI, what they cost, and budgets.',
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
    const pages = new Pages<UsagePage>(shell, labShell, 'jp-pai-usage');
    const model = new UsageModel(client);
    commands.addCommand(CommandIDs.showUsage, {
      label: trans.__('Show the Usage of PAI'),
      caption: trans.__('GPU and CPU hours, what they cost, and budgets'),
      icon: usageIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () =>
        pages.show(
          '',
          async () => {
            const { UsagePage } = await import('./view');
            return new UsagePage({ model, translator: language });
          },
          (_, isNew) => isNew && void model.refresh()
        )
    });
    palette?.addItem({
      command: CommandIDs.showUsage,
      category: trans.__('PAI')
    });
    pages.restore(restorer, CommandIDs.showUsage);
  }
};
