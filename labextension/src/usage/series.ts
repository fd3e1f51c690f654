/**
 * What is plotted of use: for each day the largest parts, and the rest together.
 */

import type { IUsageRow } from '../types';
import type { By, IUsageState, Measure } from './model';
import { amountOf, nameOf } from './model';

/** So many parts have a colour of the theme that is easily told from the others. */
const LARGEST = 6;

/** A part of the bars: its values by day. */
export interface ISeries {
  /** Null: all others together. */
  readonly name: string | null;
  readonly values: readonly number[];
}

function dailyOf(row: IUsageRow, measure: Measure): readonly number[] {
  const { gpuHours, cpuHours, cost } = row.daily ?? {
    gpuHours: [],
    cpuHours: [],
    cost: null
  };
  switch (measure) {
    case 'gpu':
      return gpuHours;
    case 'cpu':
      return cpuHours;
    case 'cost':
      return (cost ?? []).map(Number);
  }
}

/** All days from the first to the last of two. */
function daysBetween(first: string, last: string): string[] {
  const found: string[] = [];
  const end = Date.parse(last);
  for (let at = Date.parse(first); at <= end; at += 24 * 60 * 60 * 1000) {
    found.push(new Date(at).toISOString().slice(0, 10));
  }
  return found;
}

function byDay(
  rows: readonly IUsageRow[],
  measure: Measure,
  since: string,
  until: string
): { days: readonly string[]; series: readonly ISeries[] } {
  const last = new Date(Date.parse(until) - 1).toISOString();
  const days = daysBetween(since.slice(0, 10), last.slice(0, 10));
  const values = new Map(
    rows.map(row => [row.day, amountOf(row, measure)] as const)
  );
  const name = '';
  return {
    days,
    series: [{ name, values: days.map(day => values.get(day) ?? 0) }]
  };
}

/** The days that are shown, and the parts of each: the largest first, then the rest. */
export function seriesOf(state: IUsageState): {
  readonly days: readonly string[];
  readonly series: readonly ISeries[];
} {
  const { usage, shownBy, measure } = state;
  if (!usage) {
    return { days: [], series: [] };
  }
  if (shownBy === 'day') {
    return byDay(usage.data, measure, usage.since, usage.until);
  }
  const rows = [...usage.data].sort(
    (one, other) => amountOf(other, measure) - amountOf(one, measure)
  );
  const used = rows.filter(row => amountOf(row, measure) > 0);
  const named = used
    .slice(0, LARGEST)
    .map(row => seriesOfRow(row, shownBy, measure));
  const rest = used.slice(LARGEST).map(row => dailyOf(row, measure));
  if (rest.length > 0) {
    const values = usage.days.map((_, n) =>
      rest.reduce((sum, each) => sum + (each[n] ?? 0), 0)
    );
    named.push({ name: null, values });
  }
  return { days: usage.days, series: named };
}

function seriesOfRow(row: IUsageRow, by: By, measure: Measure): ISeries {
  return { name: nameOf(row, by), values: dailyOf(row, measure) };
}
