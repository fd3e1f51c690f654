/**
 * The order of a folder's entries: folders first, then by a column.
 */

import type { IFileEntry } from '../types';

/** A column to order by. */
export type Column = 'name' | 'size' | 'modified';

/** An order of entries. */
export interface IOrder {
  readonly by: Column;
  readonly isDescending: boolean;
}

const NAMES = new Intl.Collator(undefined, { numeric: true });

function compared(one: IFileEntry, other: IFileEntry, by: Column): number {
  switch (by) {
    case 'size':
      return one.size - other.size;
    case 'modified':
      return (one.modified ?? '').localeCompare(other.modified ?? '');
    case 'name':
      return 0;
  }
}

/** The entries in an order; those that are equal in it are by name. */
export function ordered(
  entries: readonly IFileEntry[],
  { by, isDescending }: IOrder
): readonly IFileEntry[] {
  const sign = isDescending ? -1 : 1;
  return [...entries].sort(
    (one, other) =>
      Number(other.kind === 'directory') - Number(one.kind === 'directory') ||
      sign * compared(one, other, by) ||
      (by === 'name' ? sign : 1) * NAMES.compare(one.name, other.name)
  );
}
