/**
 * The jobs of the full-page table: rows are read where they are looked at.
 */

import type { IDisposable } from '@lumino/disposable';
import { Throttler } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../problem';
import { asPaiError } from '../problem';
import type { IJobQuery, IPaiClient } from '../tokens';
import type { IJobSummary } from '../types';

/** Rows that are read at a time. */
const PAGE = 100;

/** A burst of changes costs one request in this time, in milliseconds. */
const BURST = 2000;

/** What is shown and in which order. */
export type ITableQuery = Required<
  Pick<
    IJobQuery,
    'keyword' | 'states' | 'username' | 'vc' | 'gpuType' | 'tag' | 'order'
  >
> & {
  /** Submitted in so many days, today included; 0: ever. */
  readonly days: number;
};

/** The midnight at which the first of so many days began; undefined for all time. */
export function sinceOf(days: number, now: Date): string | undefined {
  if (days <= 0) {
    return undefined;
  }
  const first = new Date(now);
  first.setHours(0, 0, 0, 0);
  first.setDate(first.getDate() - days + 1);
  return first.toISOString();
}

/** The query of a table that was just opened: what started last is first, what waits is last. */
export const FIRST_QUERY: ITableQuery = {
  keyword: '',
  states: [],
  username: '',
  vc: '',
  gpuType: '',
  tag: '',
  days: 0,
  order: 'launchedTime,DESC'
};

/** The table as it is now. */
export interface IJobTableState {
  readonly query: ITableQuery;
  readonly total: number;
  /** Rows by their place; those that were not looked at are absent. */
  readonly rows: ReadonlyMap<number, IJobSummary>;
  /** Jobs that are marked, by uid. */
  readonly marked: ReadonlyMap<string, IJobSummary>;
  /** GPU types of the cluster; empty until they are known. */
  readonly gpuTypes: readonly string[];
  readonly loaded: boolean;
  readonly problem: PaiError | null;
}

/** GPU types to choose from, in order: of the cluster, of the rows, and the one that is asked for. */
export function typesOf(state: IJobTableState): string[] {
  const found = new Set(state.gpuTypes);
  for (const job of state.rows.values()) {
    job.gpuTypes.forEach(type => found.add(type));
  }
  found.add(state.query.gpuType);
  return [...found].filter(type => type !== '').sort();
}

/** The model of the table. */
export class JobTableModel implements IDisposable {
  constructor(private readonly _client: IPaiClient) {
    this._burst = new Throttler(() => this._load(), {
      limit: BURST,
      edge: 'trailing'
    });
  }

  get state(): IJobTableState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Show other jobs, or in another order. What is marked stays marked only while it can be seen to be. */
  ask(change: Partial<ITableQuery>): Promise<void> {
    const query = { ...this._state.query, ...change };
    this._first = 0;
    this._applied = ++this._asked; // answers to earlier questions are no longer wanted
    this._update({ query, rows: new Map(), marked: new Map(), loaded: false });
    return this._load();
  }

  /** Learn the GPU types of the cluster; without an answer those of the rows remain to choose from. */
  async loadGpuTypes(): Promise<void> {
    try {
      const { nodes, virtualClusters } = await this._client.use();
      const cells = virtualClusters.flatMap(each => each.cells);
      const gpuTypes = [
        ...nodes.flatMap(node => node.gpuTypes),
        ...cells.map(each => each.leafType)
      ];
      if (!this._isDisposed) {
        this._update({ gpuTypes });
      }
    } catch {
      // The question for jobs says that the backend does not answer.
    }
  }

  /** Order by a field; by the same one again in the other direction. */
  orderBy(field: string): Promise<void> {
    const [now, direction] = this._state.query.order.split(',');
    const descends = now === field ? direction === 'ASC' : false;
    return this.ask({ order: `${field},${descends ? 'DESC' : 'ASC'}` });
  }

  /** Rows `first` to `end` are looked at. While an answer is due no other is asked for: a scroll would ask for many. */
  look(first: number, end: number): void {
    this._sight = [first, end];
    this._first = Math.floor(first / PAGE) * PAGE;
    this._end = end;
    if (this._settled >= this._asked && this._lacks(first, end)) {
      void this._load();
    }
  }

  private _lacks(first: number, end: number): boolean {
    for (let place = first; place < Math.min(end, this._state.total); place++) {
      if (!this._state.rows.has(place)) {
        return true;
      }
    }
    return false;
  }

  /** Read what is looked at again, soon. */
  refresh(): void {
    void this._burst.invoke();
  }

  /** Mark a job, or no longer. */
  mark(job: IJobSummary, isMarked: boolean): void {
    const marked = new Map(this._state.marked);
    if (isMarked) {
      marked.set(job.uid, job);
    } else {
      marked.delete(job.uid);
    }
    this._update({ marked });
  }

  /** Mark all rows that were read, or none. */
  markAll(isMarked: boolean): void {
    const rows = isMarked ? [...this._state.rows.values()] : [];
    this._update({ marked: new Map(rows.map(job => [job.uid, job])) });
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._burst.dispose();
      Signal.clearData(this);
    }
  }

  /** Read the pages that are looked at, and apply the answer unless a later one was applied. */
  private async _load(): Promise<void> {
    const turn = ++this._asked;
    const { days, ...query } = this._state.query;
    const since = sinceOf(days, new Date());
    const [offset, sight] = [this._first, this._sight];
    const limit = Math.max(1, Math.ceil((this._end - offset) / PAGE)) * PAGE;
    try {
      const page = await this._client.jobs({
        ...query,
        since,
        offset,
        limit
      });
      if (turn <= this._applied || this._isDisposed) {
        return;
      }
      this._applied = turn;
      const rows = new Map(
        page.data.map((job, place) => [offset + place, job] as const)
      );
      const marked = new Map(this._state.marked);
      for (const job of page.data) {
        if (marked.has(job.uid)) {
          marked.set(job.uid, job);
        }
      }
      const total = page.totalCount;
      this._settled = turn;
      this._update({ rows, marked, total, loaded: true, problem: null });
      if (sight !== this._sight) {
        this.look(...this._sight);
      }
    } catch (reason) {
      if (turn > this._applied && !this._isDisposed) {
        this._applied = turn;
        this._update({ problem: asPaiError(reason), loaded: true });
      }
    } finally {
      this._settled = Math.max(this._settled, turn);
    }
  }

  private _update(change: Partial<IJobTableState>): void {
    this._state = { ...this._state, ...change };
    this._changed.emit();
  }

  private _applied = 0;
  private _asked = 0;
  private readonly _burst: Throttler;
  private readonly _changed = new Signal<this, void>(this);
  private _end = PAGE;
  private _first = 0;
  private _isDisposed = false;
  /** The last question that was answered, or failed. */
  private _settled = 0;
  private _sight: readonly [number, number] = [0, 0];
  private _state: IJobTableState = {
    query: FIRST_QUERY,
    total: 0,
    rows: new Map(),
    marked: new Map(),
    gpuTypes: [],
    loaded: false,
    problem: null
  };
}
