/**
 * The nodes: what of each is in use, and which need a look.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { INodeUse } from '../types';
import { DataRow, DataTable } from './table';

/** Nodes shown at first. */
const SHOWN = 50;

/** MiB of a GiB. */
const GIB = 1024;

/** Nodes that cannot be used as they should be first; else by name, as they come. */
export function troubledFirst(nodes: readonly INodeUse[]): readonly INodeUse[] {
  const rank = (node: INodeUse) =>
    !node.ready ? 0 : node.badGpus > 0 ? 1 : !node.schedulable ? 2 : 3;
  return [...nodes].sort((one, other) => rank(one) - rank(other));
}

/** GPUs of a node that tasks could have; below zero when more are broken or held than there are. */
export function freeGpus(node: INodeUse): number {
  return node.gpus - node.usedGpus - node.badGpus - node.otherGpus;
}

/** GPUs of these nodes together: all, in use, broken. */
export function gpuTotals(nodes: readonly INodeUse[]): {
  readonly all: number;
  readonly used: number;
  readonly bad: number;
} {
  const sum = (number: (node: INodeUse) => number) =>
    nodes.reduce((total, node) => total + number(node), 0);
  return {
    all: sum(node => node.gpus),
    used: sum(node => node.usedGpus),
    bad: sum(node => node.badGpus)
  };
}

function stateText(trans: TranslationBundle, node: INodeUse): string {
  if (!node.ready) {
    return node.reason
      ? trans.__('unavailable: %1', node.reason)
      : trans.__('unavailable');
  }
  return node.schedulable
    ? trans.__('ready')
    : trans.__('no new tasks start here');
}

function gpuText(trans: TranslationBundle, node: INodeUse): string {
  const { gpus, usedGpus, badGpus, otherGpus, gpuTypes } = node;
  if (gpus === 0 && badGpus === 0) {
    return trans.__('none');
  }
  let text = trans.__('%1 of %2 %3', usedGpus, gpus, gpuTypes.join(', '));
  if (badGpus > 0) {
    text = trans.__('%1, %2 broken', text, badGpus);
  }
  return otherGpus > 0
    ? trans.__('%1, %2 held by pods of others', text, otherGpus)
    : text;
}

function gib(mib: number): string {
  return String(Math.round((10 * mib) / GIB) / 10);
}

function cellsOf(trans: TranslationBundle, node: INodeUse): string[] {
  const { cpus, memoryMb } = node;
  const usedCpus = node.usedCpus + node.otherCpus;
  const usedMemoryMb = node.usedMemoryMb + node.otherMemoryMb;
  return [
    node.name,
    stateText(trans, node),
    gpuText(trans, node),
    trans.__('%1 of %2', usedCpus, cpus),
    trans.__('%1 of %2 GiB', gib(usedMemoryMb), gib(memoryMb))
  ];
}

/** All nodes, those in trouble first. */
export function NodesSection(props: {
  trans: TranslationBundle;
  nodes: readonly INodeUse[];
}): JSX.Element {
  const { trans, nodes } = props;
  const [whole, setWhole] = React.useState(false);
  const { all, used, bad } = gpuTotals(nodes);
  const ordered = troubledFirst(nodes);
  const columns = [
    { label: trans.__('Node') },
    { label: trans.__('State') },
    { label: trans.__('GPUs') },
    { label: trans.__('CPUs') },
    { label: trans.__('Memory') }
  ];
  return (
    <section aria-labelledby="jp-pai-cluster-nodes">
      <h3 id="jp-pai-cluster-nodes">{trans.__('Nodes')}</h3>
      {all > 0 && (
        <p>{trans.__('%1 of %2 GPUs in use, %3 broken.', used, all, bad)}</p>
      )}
      {nodes.length === 0 && <p>{trans.__('No node is known yet.')}</p>}
      {nodes.length > 0 && (
        <DataTable columns={columns} label={trans.__('Nodes')}>
          {(whole ? ordered : ordered.slice(0, SHOWN)).map(node => (
            <DataRow
              cells={cellsOf(trans, node)}
              columns={columns}
              header={0}
              key={node.name}
              troubled={!node.ready || node.badGpus > 0}
            />
          ))}
        </DataTable>
      )}
      {!whole && nodes.length > SHOWN && (
        <button className="jp-mod-styled" onClick={() => setWhole(true)}>
          {trans.__('Show all %1 nodes', nodes.length)}
        </button>
      )}
    </section>
  );
}
