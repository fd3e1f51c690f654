/**
 * The plugin that shows how programs reach a job.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { CommandIDs, DOMAIN, IJobListModel, IPaiClient } from '../tokens';
import { addConnect } from './commands';

/** Adds the command and its place in the palette. */
export const connectPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:connect',
  description: 'Shows how editors and SSH programs reach a PAI job.',
  autoStart: true,
  requires: [IPaiClient, IJobListModel],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    jobs: IJobListModel,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    addConnect(app.commands, { client, jobs, trans });
    for (const command of [CommandIDs.connect, CommandIDs.openCode]) {
      palette?.addItem({ command, category: trans.__('PAI') });
    }
  }
};
