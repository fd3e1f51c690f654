/**
 * The plugin that talks to the backend.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { clientOver } from './client';
import { IPaiClient } from '../tokens';

/** Provides {@link IPaiClient} over the application's own connection. */
export const clientPlugin: JupyterFrontEndPlugin<IPaiClient> = {
  id: 'jupyter-pai:client',
  description: 'Talks to the PAI backend through the Jupyter server.',
  autoStart: true,
  provides: IPaiClient,
  activate: (app: JupyterFrontEnd): IPaiClient =>
    clientOver(app.serviceManager.serverSettings)
};
