/**
 * A table of which only the rows in sight are rendered.
 */

import * as React from 'react';

/** Up to as many rows are rendered whole: find-in-page and screen readers then see them all. */
const SMALL = 60;

/** Rows rendered above and below those in sight. */
const AROUND = 10;

/** Pixels in sight before they have been measured. */
const UNMEASURED = 800;

/** A column of the table. */
export interface IColumn {
  readonly id: string;
  /** What its head shows. */
  readonly head: React.ReactNode;
  /** Pixels; columns share what is left in proportion. */
  readonly width: number;
  readonly sort?: 'ascending' | 'descending' | 'none';
  /** Hides the column where the table has no room for it; its cells must have {@link SPARE} too. */
  readonly isSpare?: boolean;
}

/** The class of a column that is hidden where the table has no room for it. */
export const SPARE = 'jp-pai-Windowed-spare';

/** The first row to render and the one behind the last. */
export function rowsInSight(
  top: number,
  height: number,
  rowHeight: number,
  count: number
): readonly [number, number] {
  if (count <= SMALL) {
    return [0, count];
  }
  const first = Math.max(0, Math.floor(top / rowHeight) - AROUND);
  const rows = Math.ceil(height / rowHeight) + 2 * AROUND;
  const start = Math.min(first, Math.max(0, count - rows));
  return [start, Math.min(count, start + rows)];
}

/** The table. Rows are given by `row`, which must set `style` and `aria-rowindex` from what it is passed. */
export function WindowedTable(props: {
  label: string;
  columns: readonly IColumn[];
  count: number;
  rowHeight: number;
  row: (
    index: number,
    attributes: { 'aria-rowindex': number; style: React.CSSProperties }
  ) => JSX.Element;
  /** Called with the rows in sight, the last excluded. */
  onSight?: (first: number, end: number) => void;
}): JSX.Element {
  const { label, columns, count, rowHeight, row, onSight } = props;
  const box = React.useRef<HTMLDivElement>(null);
  const [place, setPlace] = React.useState({ top: 0, height: UNMEASURED });
  React.useLayoutEffect(() => {
    const node = box.current;
    if (!node || typeof ResizeObserver === 'undefined') {
      return;
    }
    const measure = () =>
      setPlace({ top: node.scrollTop, height: node.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  // The same object for all renderings: rows that are memoised stay as they are.
  const style = React.useMemo(() => ({ height: rowHeight }), [rowHeight]);
  const [first, end] = rowsInSight(place.top, place.height, rowHeight, count);
  React.useEffect(() => onSight?.(first, end), [first, end, onSight]);
  const rows = [];
  for (let index = first; index < end; index++) {
    rows.push(row(index, { 'aria-rowindex': index + 2, style }));
  }
  const width = columns
    .filter(column => !column.isSpare)
    .reduce((sum, column) => sum + column.width, 0);
  const classOf = (column: IColumn) => (column.isSpare ? SPARE : undefined);
  return (
    <div
      aria-label={label}
      className="jp-pai-Windowed"
      onScroll={event => {
        const { scrollTop, clientHeight } = event.currentTarget;
        setPlace({ top: scrollTop, height: clientHeight });
      }}
      ref={box}
      role="region"
      tabIndex={0}
    >
      <table
        aria-label={label}
        aria-rowcount={count + 1}
        style={{ minWidth: width }}
      >
        <colgroup>
          {columns.map(column => (
            <col
              className={classOf(column)}
              key={column.id}
              style={{ width: column.width }}
            />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(column => (
              <th
                aria-sort={column.sort}
                className={classOf(column)}
                key={column.id}
                scope="col"
              >
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && (
            <tr aria-hidden="true" style={{ height: first * rowHeight }} />
          )}
          {rows}
          {end < count && (
            <tr
              aria-hidden="true"
              style={{ height: (count - end) * rowHeight }}
            />
          )}
        </tbody>
      </table>
    </div>
  );
}
