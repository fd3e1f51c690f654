/**
 * The plugin that changes between the user's backends.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IRouter } from '@jupyterlab/application';
import {
  Dialog,
  ICommandPalette,
  InputDialog,
  showDialog
} from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { reportProblem } from '../feedback';
import { CommandIDs, DOMAIN, IPaiClient } from '../tokens';

/** Ask which backend to use. Whether another one is used now. */
export async function chooseContext(
  client: IPaiClient,
  trans: TranslationBundle
): Promise<boolean> {
  const { contexts, fixedBy } = await client.contexts();
  if (fixedBy) {
    await showDialog({
      title: trans.__('Use another backend'),
      body: trans.__(
        'The variable %1 says which backend this Jupyter server uses.',
        fixedBy
      ),
      buttons: [Dialog.okButton()]
    });
    return false;
  }
  const words = contexts.map(({ name, url }) =>
    url ? `${name} (${url})` : trans.__('%1 (the private backend)', name)
  );
  const now = contexts.findIndex(each => each.current);
  const { value } = await InputDialog.getItem({
    title: trans.__('Use another backend'),
    label: trans.__(
      'In a terminal, pai login adds one. The page is loaded again.'
    ),
    items: words,
    current: now,
    okLabel: trans.__('Use')
  });
  const chosen = contexts[words.indexOf(value ?? '')];
  if (!chosen || chosen.current) {
    return false;
  }
  await client.useContext(chosen.name);
  return true;
}

/** Changes between backends, from the palette and the menu. */
export const contextsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:contexts',
  description: 'Changes between PAI backends.',
  autoStart: true,
  requires: [IPaiClient],
  optional: [IRouter, ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    router: IRouter | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    app.commands.addCommand(CommandIDs.switchContext, {
      label: trans.__('Use Another PAI Backend…'),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async () => {
        try {
          if (await chooseContext(client, trans)) {
            router?.reload();
          }
        } catch (reason) {
          reportProblem(trans, reason);
        }
      }
    });
    palette?.addItem({
      command: CommandIDs.switchContext,
      category: trans.__('PAI')
    });
  }
};
