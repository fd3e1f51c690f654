/**
 * The plugin of the page of users.
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
import { addPeopleCommands } from './commands';
import { addGroupCommands } from './group_commands';
import { PeopleModel } from './model';
import type { PeoplePage } from './view';

/** Shows the users of the backend, and changes what each may do. */
export const peoplePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:people',
  description: 'Shows the users of PAI, and changes what each may do.',
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
    const pages = new Pages<PeoplePage>(shell, labShell, 'jp-pai-people');
    const model = new PeopleModel(client);
    const options = {
      client,
      model,
      trans,
      show: () =>
        pages.show(
          '',
          async () => {
            const { PeoplePage } = await import('./view');
            return new PeoplePage({ model, commands, translator: language });
          },
          (_, isNew) => isNew && void model.refresh()
        )
    };
    addPeopleCommands(commands, options);
    addGroupCommands(commands, options);
    for (const command of [
      CommandIDs.showPeople,
      CommandIDs.addUser,
      CommandIDs.addGroup
    ]) {
      palette?.addItem({ command, category: trans.__('PAI') });
    }
    pages.restore(restorer, CommandIDs.showPeople);
  }
};
