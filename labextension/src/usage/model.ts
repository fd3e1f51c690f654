/**
 * What was used in a time, and the budgets: read once for each choice of the user, and not again by itself.
 */

import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../problem';
import { asPaiError } from '../problem';
import type { IPaiClient } from '../tokens';
import type { IBudget, IUsage, IUsageRow } from '../types';
import type { IBounds, RangeName } from './range';
import { boundsOf, boundsOfDays } from './range';

/** By what use is told apart. */
export type By = 'user' | 'group' | 'vc' | 'type' | 'day';

/** What is added up and plotted. */
export type Measure = 'gpu' | 'cpu' | 'cost';

/** A column that rows may be sorted by. */
export type Column = 'name' | 'runs' | Measure;

/** What the user has chosen. */
export interface IChoice {
  readonly range: RangeName;
  /** First and last day of the range `own`. */
  readonly first: string;
  readonly last: string;
  readonly by: By;
}

/** What is known. */
export interface IUsageState {
  readonly choice: IChoice;
  readonly measure: Measure;
  readonly column: Column;
  readonly isDescending: boolean;
  /** Null until the first answer. */
  readonly usage: IUsage | null;
  /** By what {@link usage} is told apart: while the next answer is awaited, not the chosen one. */
  readonly shownBy: By;
  readonly budgets: readonly IBudget[];
  readonly isLoading: boolean;
  readonly problem: PaiError | null;
}

/** What a row is about; empty for tasks without GPUs, and users in no group. */
export function nameOf(row: IUsageRow, by: By): string {
  const { user, group, virtualCluster, gpuType, day } = row;
  return { user, group, vc: virtualCluster, type: gpuType, day }[by] ?? '';
}

/** How much of something a row has. */
export function amountOf(row: IUsageRow, column: Measure | 'runs'): number {
  const { gpuHours, cpuHours, cost, runs } = row;
  return { gpu: gpuHours, cpu: cpuHours, cost: Number(cost ?? 0), runs }[
    column
  ];
}

/** What an answer can be measured by: without any prices there are no costs. */
export function measuresOf(usage: IUsage | null): readonly Measure[] {
  return usage && usage.currency !== null
    ? ['gpu', 'cpu', 'cost']
    : ['gpu', 'cpu'];
}

/** The rows in the chosen order. */
export function sortedRows(state: IUsageState): readonly IUsageRow[] {
  const { usage, shownBy, column, isDescending } = state;
  const { compare } = new Intl.Collator(undefined, { numeric: true });
  const byName = (one: IUsageRow, other: IUsageRow) =>
    compare(nameOf(one, shownBy), nameOf(other, shownBy));
  const order =
    column === 'name'
      ? byName
      : (one: IUsageRow, other: IUsageRow) =>
          amountOf(one, column) - amountOf(other, column) || byName(other, one);
  const rows = [...(usage?.data ?? [])].sort(order);
  return isDescending ? rows.reverse() : rows;
}

/** The model of the page of usage. */
export class UsageModel implements IDisposable {
  constructor(
    private readonly _client: IPaiClient,
    private readonly _now: () => number = Date.now
  ) {}

  get state(): IUsageState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Choose another time, or tell use apart by something else: one request, unless a day is still missing. */
  async choose(change: Partial<IChoice>): Promise<void> {
    const choice = { ...this._state.choice, ...change };
    this._apply({ choice, ...(change.by && orderOf(change.by)) });
    await this._read();
  }

  /** Plot something else. */
  show(measure: Measure): void {
    this._apply({ measure });
  }

  /** Sort by a column; once more turns the order round. */
  orderBy(column: Column): void {
    const isSame = column === this._state.column;
    const isDescending = isSame ? !this._state.isDescending : column !== 'name';
    this._apply({ column, isDescending });
  }

  /** Read use and budgets again; the state says what went wrong. */
  async refresh(): Promise<void> {
    const budgets = this._client.budgets().then(
      found => this._apply({ budgets: found }),
      (reason: unknown) => this._apply({ problem: asPaiError(reason) })
    );
    await Promise.all([this._read(), budgets]);
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private get _bounds(): IBounds | null {
    const { range, first, last } = this._state.choice;
    return range === 'own'
      ? boundsOfDays(first, last)
      : boundsOf(range, this._now());
  }

  private async _read(): Promise<void> {
    const turn = ++this._asked;
    const bounds = this._bounds;
    if (!bounds) {
      this._apply({ isLoading: false });
      return;
    }
    const { by } = this._state.choice;
    this._apply({ isLoading: true });
    const change = await this._client.usage(by, bounds).then(
      usage => ({ usage, shownBy: by, problem: null }),
      (reason: unknown) => ({ problem: asPaiError(reason) })
    );
    // An answer to an earlier choice is of no use.
    if (turn === this._asked) {
      this._apply({ ...change, isLoading: false });
    }
  }

  private _apply(change: Partial<IUsageState>): void {
    if (!this._isDisposed) {
      this._state = { ...this._state, ...change };
      this._changed.emit();
    }
  }

  private _asked = 0;
  private _changed = new Signal<this, void>(this);
  private _isDisposed = false;
  private _state: IUsageState = {
    choice: { range: 'month', first: '', last: '', by: 'user' },
    measure: 'gpu',
    column: 'gpu',
    isDescending: true,
    usage: null,
    shownBy: 'user',
    budgets: [],
    isLoading: false,
    problem: null
  };
}

/** Days are read in their order, all else by how much it is. */
function orderOf(by: By): Pick<IUsageState, 'column' | 'isDescending'> {
  return by === 'day'
    ? { column: 'name', isDescending: false }
    : { column: 'gpu', isDescending: true };
}
