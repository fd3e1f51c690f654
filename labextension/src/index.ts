/**
 * The plugins of jupyter-pai.
 */

import { clientPlugin } from './client/plugin';
import { clusterPlugin } from './cluster/plugin';
import { connectPlugin } from './connect/plugin';
import { detailPlugin } from './detail/plugin';
import { jobsPlugin } from './jobs/plugin';
import { kernelsPlugin } from './kernels/plugin';
import { outputPlugin } from './output/plugin';
import { submitPlugin } from './submit/plugin';
import { terminalPlugin } from './terminal/plugin';

export * from './tokens';

export default [
  clientPlugin,
  jobsPlugin,
  detailPlugin,
  connectPlugin,
  submitPlugin,
  terminalPlugin,
  clusterPlugin,
  outputPlugin,
  kernelsPlugin
];
