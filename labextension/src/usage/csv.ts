/**
 * Use as lines for a spreadsheet.
 */

import type { IUsage, IUsageRow } from '../types';
import type { By } from './model';
import { nameOf } from './model';

const COLUMNS: Record<By, string> = {
  user: 'user',
  group: 'group',
  vc: 'virtualCluster',
  type: 'gpuType',
  day: 'day'
};

/** A value, in quotes where it needs them (RFC 4180). */
function field(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/** The same columns as `pai usage --csv` has. */
export function csvOf(
  usage: IUsage,
  by: By,
  rows: readonly IUsageRow[]
): string {
  const { currency } = usage;
  const money = currency === null ? [] : ['cost', 'currency'];
  const head = [COLUMNS[by], 'gpuHours', 'cpuHours', 'runs', ...money];
  const lines = rows.map(row => [
    nameOf(row, by),
    row.gpuHours.toFixed(6),
    row.cpuHours.toFixed(6),
    row.runs,
    ...(currency === null ? [] : [row.cost ?? '', currency])
  ]);
  return [head, ...lines]
    .map(line => `${line.map(field).join(',')}\n`)
    .join('');
}
