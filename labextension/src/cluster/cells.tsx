/**
 * What a virtual cluster owns and uses, a row a kind of cell, each with a bar.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { ICellsUse } from '../types';
import type { IColumn } from './table';
import { DataRow, DataTable } from './table';

/** A share of the owned cells, in cells. */
export interface IPart {
  readonly kind: 'guaranteed' | 'others' | 'reserved' | 'bad';
  readonly cells: number;
}

/**
 * The parts of the bar: together with what is free they are what is owned.
 *
 * Where all virtual clusters share, what others use is what is neither free nor otherwise told.
 */
export function partsOf(use: ICellsUse, shared: boolean): readonly IPart[] {
  const own = use.guaranteed + (shared ? use.opportunistic : 0);
  const told = own + use.reserved + use.bad + use.free;
  const parts: readonly IPart[] = [
    { kind: 'guaranteed', cells: own },
    { kind: 'others', cells: shared ? Math.max(0, use.owned - told) : 0 },
    { kind: 'reserved', cells: use.reserved },
    { kind: 'bad', cells: use.bad }
  ];
  return parts.filter(part => part.cells > 0);
}

/** What is owned, as its owner asked for it: `2 V100-NODE, 1 V100-SWITCH`. */
export function shapesText(use: ICellsUse): string {
  return Object.entries(use.shapes)
    .map(([type, number]) => `${number} ${type}`)
    .join(', ');
}

function Bar(props: { use: ICellsUse; shared: boolean }): JSX.Element {
  const { use, shared } = props;
  return (
    <div aria-hidden="true" className="jp-pai-Cluster-bar">
      {partsOf(use, shared).map(({ kind, cells }) => (
        <span
          data-kind={kind}
          key={kind}
          style={{ width: `${(100 * cells) / Math.max(1, use.owned)}%` }}
        />
      ))}
    </div>
  );
}

function columnsOf(trans: TranslationBundle): readonly IColumn[] {
  const numeric = true;
  return [
    { label: trans.__('GPU type') },
    { label: trans.__('Owned'), numeric },
    {
      label: trans.__('Guaranteed'),
      help: trans.__('In use on its own quota; never preempted by others.'),
      numeric
    },
    {
      label: trans.__('Opportunistic'),
      help: trans.__(
        'In use beyond its quota; preempted when their owner needs them.'
      ),
      numeric
    },
    {
      label: trans.__('Reserved'),
      help: trans.__(
        'Reserved for jobs that wait until preempted jobs have stopped.'
      ),
      numeric
    },
    { label: trans.__('Broken'), numeric },
    { label: trans.__('Free'), numeric }
  ];
}

/** The name of the cells, what of them is owned in which shape, and the bar. */
function CellsName(props: {
  trans: TranslationBundle;
  use: ICellsUse;
  shared: boolean;
}): JSX.Element {
  const { trans, use, shared } = props;
  return (
    <div title={shapesText(use)}>
      {use.leafType}
      {use.pinnedCell && <span> {trans.__('pinned: %1', use.pinnedCell)}</span>}
      {use.owned > 0 && <Bar shared={shared} use={use} />}
    </div>
  );
}

/** All kinds of cells of a virtual cluster. */
export function CellsTable(props: {
  trans: TranslationBundle;
  name: string;
  cells: readonly ICellsUse[];
  shared: boolean;
}): JSX.Element {
  const { trans, name, cells, shared } = props;
  const columns = columnsOf(trans);
  return (
    <DataTable columns={columns} label={trans.__('Cells of %1', name)}>
      {cells.map(use => (
        <DataRow
          cells={[
            <CellsName key="name" shared={shared} trans={trans} use={use} />,
            use.owned,
            use.guaranteed,
            use.opportunistic,
            use.reserved,
            use.bad,
            use.free
          ]}
          columns={columns}
          header={0}
          key={`${use.leafType} ${use.pinnedCell}`}
        />
      ))}
    </DataTable>
  );
}
