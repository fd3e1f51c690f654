/**
 * A table that becomes a list of facts where there is no room for columns.
 *
 * Roles are written out: browsers forget those of a table whose rows are laid out as blocks.
 */

import * as React from 'react';

/** A column: its heading, and what it means for those who point at it. */
export interface IColumn {
  readonly label: string;
  readonly help?: string;
  /** Whether it has numbers alone. */
  readonly numeric?: boolean;
  /** What heads it in place of the label, such as a button that sorts by it. */
  readonly head?: React.ReactNode;
  readonly sort?: 'ascending' | 'descending' | 'none';
}

/** The table with its headings; the children are its rows. */
export const DataTable = React.forwardRef<
  HTMLTableElement,
  React.PropsWithChildren<{ label: string; columns: readonly IColumn[] }>
>(function DataTable({ label, columns, children }, ref): JSX.Element {
  return (
    <table aria-label={label} ref={ref} role="table">
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(column => (
            <th
              aria-sort={column.sort}
              data-numeric={column.numeric}
              key={column.label}
              role="columnheader"
              scope="col"
              title={column.help}
            >
              {column.head ?? column.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">{children}</tbody>
    </table>
  );
});

/** A row, with a cell for each column; the one of number `header` names it. */
export function DataRow(props: {
  columns: readonly IColumn[];
  cells: readonly React.ReactNode[];
  header: number;
  /** Whether it needs a look. */
  troubled?: boolean;
}): JSX.Element {
  const { columns, cells, header, troubled } = props;
  return (
    <tr data-troubled={troubled} role="row">
      {cells.map((cell, place) => {
        const { label, numeric } = columns[place];
        return place === header ? (
          <th key={label} role="rowheader" scope="row">
            {cell}
          </th>
        ) : (
          <td
            data-label={label}
            data-numeric={numeric}
            data-zero={cell === 0}
            key={label}
            role="cell"
          >
            {cell}
          </td>
        );
      })}
    </tr>
  );
}
