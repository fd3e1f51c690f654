/**
 * The plugins of jupyter-pai.
 */

import { clientPlugin } from './client/plugin';
import { clusterPlugin } from './cluster/plugin';
import { connectPlugin } from './connect/plugin';
import { contextsPlugin } from './contexts/plugin';
import { detailPlugin } from './detail/plugin';
import { filesPlugin } from './files/plugin';
import { notificationsPlugin } from './jobs/notifying';
import { jobsPlugin } from './jobs/plugin';
import { jobTablePlugin } from './jobs/table_plugin';
import { kernelsPlugin } from './kernels/plugin';
import { notebooksPlugin } from './notebooks/plugin';
import { noticesPlugin } from './notices/plugin';
import { outputPlugin } from './output/plugin';
import { peoplePlugin } from './people/plugin';
import { submitPlugin } from './submit/plugin';
import { sweepsPlugin } from './sweeps/plugin';
import { terminalPlugin } from './terminal/plugin';
import { usagePlugin } from './usage/plugin';

export * from './tokens';

export default [
  clientPlugin,
  jobsPlugin,
  jobTablePlugin,
  notificationsPlugin,
  detailPlugin,
  connectPlugin,
  contextsPlugin,
  submitPlugin,
  terminalPlugin,
  clusterPlugin,
  peoplePlugin,
  usagePlugin,
  filesPlugin,
  noticesPlugin,
  outputPlugin,
  kernelsPlugin,
  notebooksPlugin,
  sweepsPlugin
];
