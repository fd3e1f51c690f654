/**
 * The icon of the panel, of launcher cards and of tabs.
 */

import { LabIcon } from '@jupyterlab/ui-components';
import clusterSvg from '../style/cluster.svg';
import paiSvg from '../style/pai.svg';
import usageSvg from '../style/usage.svg';

/** A GPU board; follows the theme's icon colour. */
export const paiIcon = new LabIcon({ name: 'jupyter-pai:pai', svgstr: paiSvg });

/** Three machines with what is in use of them. */
export const clusterIcon = new LabIcon({
  name: 'jupyter-pai:cluster',
  svgstr: clusterSvg
});

/** Bars of a plot. */
export const usageIcon = new LabIcon({
  name: 'jupyter-pai:usage',
  svgstr: usageSvg
});
