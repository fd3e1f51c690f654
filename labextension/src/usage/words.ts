/**
 * Usage in words.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IBudget } from '../types';
import type { By, Measure } from './model';

/** Numbers with so many decimal places. */
const HOURS = new Intl.NumberFormat(undefined, {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1
});
const MONEY = new Intl.NumberFormat(undefined, {
  minimumFractionDigits: 2,
  maximumFractionDigits: 2
});

/** What an amount is of. */
export function measureWord(
  trans: TranslationBundle,
  measure: Measure
): string {
  switch (measure) {
    case 'gpu':
      return trans.__('GPU hours');
    case 'cpu':
      return trans.__('CPU hours');
    case 'cost':
      return trans.__('Cost');
  }
}

/** An amount without its unit. */
export function amountText(measure: Measure, amount: number): string {
  return (measure === 'cost' ? MONEY : HOURS).format(amount);
}

/** An amount with its unit. */
export function amountWithUnit(
  trans: TranslationBundle,
  measure: Measure,
  amount: number,
  currency: string | null
): string {
  const text = amountText(measure, amount);
  switch (measure) {
    case 'gpu':
      return trans.__('%1 GPU hours', text);
    case 'cpu':
      return trans.__('%1 CPU hours', text);
    case 'cost':
      return `${text} ${currency ?? ''}`.trim();
  }
}

/** By what use is told apart, as the head of its column. */
export function byWord(trans: TranslationBundle, by: By): string {
  switch (by) {
    case 'user':
      return trans.__('User');
    case 'group':
      return trans.__('Group');
    case 'vc':
      return trans.__('Virtual cluster');
    case 'type':
      return trans.__('GPU type');
    case 'day':
      return trans.__('Day');
  }
}

/** What a row is about. */
export function nameWord(
  trans: TranslationBundle,
  by: By,
  name: string
): string {
  if (name) {
    return name;
  }
  return by === 'group' ? trans.__('In no group') : trans.__('Without GPUs');
}

/** Whose use a budget limits. */
export function budgetOf(trans: TranslationBundle, budget: IBudget): string {
  const { user, group, virtualCluster } = budget;
  return [
    user && trans.__('User %1', user),
    group && trans.__('Group %1', group),
    virtualCluster && trans.__('Virtual cluster %1', virtualCluster)
  ]
    .filter(Boolean)
    .join(' · ');
}

/**
 * What a budget allows and what of it is used, each with its unit.
 *
 * What is used is rounded down: a budget of which something is left never reads as used up.
 */
export function budgetAmounts(
  trans: TranslationBundle,
  budget: IBudget
): { readonly most: string; readonly used: string } {
  const { resource, hours, usedHours, amount, usedAmount, currency } = budget;
  const measure = resource === 'money' ? 'cost' : resource;
  const steps = measure === 'cost' ? 100 : 10;
  const used = Number(usedHours ?? usedAmount ?? 0);
  const text = (value: number) =>
    amountWithUnit(trans, measure, value, currency);
  return {
    most: text(Number(hours ?? amount ?? 0)),
    used: text(Math.floor(used * steps) / steps)
  };
}

/** Whole percent of a budget that are used, rounded down. */
export function budgetShare(budget: IBudget): number {
  const { hours, usedHours, amount, usedAmount } = budget;
  const most = Number(hours ?? amount ?? 0);
  const used = Number(usedHours ?? usedAmount ?? 0);
  return most > 0 ? Math.floor((100 * used) / most) : 100;
}

/** When the use of a budget began to count, and when it begins again. */
export function budgetTimes(trans: TranslationBundle, budget: IBudget): string {
  const begins = budget.begins.slice(0, 10);
  return budget.ends
    ? trans.__('%1 to %2', begins, lastDay(budget.ends))
    : trans.__('since %1', begins);
}

/** The last day, of UTC, before a moment. */
export function lastDay(until: string): string {
  return new Date(Date.parse(until) - 1).toISOString().slice(0, 10);
}
