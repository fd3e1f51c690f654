/**
 * What a virtual cluster owns and uses, a row a kind of cell, each with a bar.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { ICellsUse } from '../types';

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

function CellsRow(props: {
  trans: TranslationBundle;
  use: ICellsUse;
  shared: boolean;
}): JSX.Element {
  const { trans, use, shared } = props;
  const numbers = [
    use.owned,
    use.guaranteed,
    use.opportunistic,
    use.reserved,
    use.bad,
    use.free
  ];
  return (
    <tr data-type={use.leafType}>
      <th scope="row" title={shapesText(use)}>
        {use.leafType}
        {use.pinnedCell && (
          <span> {trans.__('pinned: %1', use.pinnedCell)}</span>
        )}
        {use.owned > 0 && <Bar shared={shared} use={use} />}
      </th>
      {numbers.map((number, column) => (
        <td data-zero={number === 0} key={column}>
          {number}
        </td>
      ))}
    </tr>
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
  return (
    <table
      aria-label={trans.__('Cells of %1', name)}
      className="jp-pai-Cluster-cells"
    >
      <thead>
        <tr>
          <th scope="col">{trans.__('GPU type')}</th>
          <th scope="col">{trans.__('Owned')}</th>
          <th
            scope="col"
            title={trans.__(
              'In use on its own quota; nobody takes these away.'
            )}
          >
            {trans.__('Guaranteed')}
          </th>
          <th
            scope="col"
            title={trans.__(
              'In use without a claim, of anybody; they make way for their owner.'
            )}
          >
            {trans.__('Opportunistic')}
          </th>
          <th
            scope="col"
            title={trans.__(
              'Kept for jobs for which others are being stopped.'
            )}
          >
            {trans.__('Reserved')}
          </th>
          <th scope="col">{trans.__('Broken')}</th>
          <th scope="col">{trans.__('Free')}</th>
        </tr>
      </thead>
      <tbody>
        {cells.map(use => (
          <CellsRow
            key={`${use.leafType} ${use.pinnedCell}`}
            shared={shared}
            trans={trans}
            use={use}
          />
        ))}
      </tbody>
    </table>
  );
}
