/**
 * The jobs of a sweep: their values, which do not change, and how they go.
 */

import type { IDisposable } from '@lumino/disposable';
import { Throttler } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../problem';
import { asPaiError } from '../problem';
import type { IPaiClient } from '../tokens';
import type { IJobSummary, ISweptValues } from '../types';
import { isFinal } from '../types';

/** A burst of events costs one request in this time, in milliseconds. */
const BURST = 1000;

/** Jobs that are asked for: twice as many as a sweep may have, for others may have names like theirs. */
const LIMIT = 512;

/** Bytes of the end of a log in which its last line is looked for. */
const TAIL = 4096;

/** Logs that are read at the same time. */
const AT_ONCE = 4;

/** Colours and cursor moves of a terminal. */
const CONTROL = /\x1b\[[0-9;?]*[A-Za-z]/g; // eslint-disable-line no-control-regex

/** A job of the sweep. */
export interface ISweepRow {
  readonly values: Readonly<Record<string, string>>;
  readonly job: IJobSummary;
  /** The last line that it has written; null while it goes on, or before that is read. */
  readonly result: string | null;
}

/** What rows are ordered by: `value:NAME`, `name`, `state` or `result`. */
export interface ISweepOrder {
  readonly column: string;
  readonly descends: boolean;
}

/** The sweep as it is known. */
export interface ISweepState {
  readonly rows: readonly ISweepRow[];
  /** The parameters in which the jobs differ. */
  readonly names: readonly string[];
  readonly order: ISweepOrder;
  readonly loaded: boolean;
  readonly problem: PaiError | null;
}

/** The last line with text in the end of a log. */
export function lastLine(text: string): string {
  const lines = text.replace(CONTROL, '').split(/[\r\n]+/);
  return lines.reverse().find(line => line.trim() !== '') ?? '';
}

/** What a row is ordered by in a column. */
function keyOf(row: ISweepRow, column: string): string {
  switch (column) {
    case 'name':
      return row.job.name;
    case 'state':
      return row.job.state;
    case 'result':
      return row.result ?? '';
    default:
      return row.values[column.slice('value:'.length)] ?? '';
  }
}

/** Rows in an order: numbers by what they are, anything else as text; the first order stays among equals. */
export function ordered(
  rows: readonly ISweepRow[],
  { column, descends }: ISweepOrder
): ISweepRow[] {
  const sign = descends ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [keyOf(one, column), keyOf(other, column)];
    const numbers = a !== '' && b !== '' ? Number(a) - Number(b) : NaN;
    return sign * (Number.isNaN(numbers) ? a.localeCompare(b) : numbers);
  });
}

/** The model of a sweep's page. */
export class SweepModel implements IDisposable {
  constructor(
    private readonly _client: IPaiClient,
    readonly name: string
  ) {
    this._burst = new Throttler(() => this.load(), {
      limit: BURST,
      edge: 'trailing'
    });
  }

  get state(): ISweepState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Read how the jobs go; the first time what they are, too. */
  async load(): Promise<void> {
    const turn = ++this._asked;
    try {
      this._values ??= (await this._client.sweep(this.name)).jobs;
      const keyword = `${this.name}-`;
      const page = await this._client.jobs({ keyword, limit: LIMIT });
      if (turn > this._applied && !this._isDisposed) {
        this._applied = turn;
        this._apply(this._values, page.data);
        await this._readResults();
      }
    } catch (reason) {
      if (turn > this._applied && !this._isDisposed) {
        this._applied = turn;
        this._update({ problem: asPaiError(reason), loaded: true });
      }
    }
  }

  /** Read how the jobs go, soon. */
  refresh(): void {
    void this._burst.invoke();
  }

  /** Order by a column; by the same one again the other way round. */
  orderBy(column: string): void {
    const { order } = this._state;
    const descends = order.column === column && !order.descends;
    const next = { column, descends };
    this._update({ order: next, rows: ordered(this._state.rows, next) });
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._burst.dispose();
      Signal.clearData(this);
    }
  }

  private _apply(
    values: readonly ISweptValues[],
    jobs: readonly IJobSummary[]
  ): void {
    const found = new Map(jobs.map(job => [job.uid, job]));
    const before = new Map(this._state.rows.map(row => [row.job.uid, row]));
    const rows = values.flatMap(({ uid, values: own }) => {
      const job = found.get(uid);
      const earlier = before.get(uid);
      const isSame = earlier?.job.completedTime === job?.completedTime;
      const result = isSame ? (earlier?.result ?? null) : null;
      return job ? [{ values: own, job, result }] : [];
    });
    const names = [
      ...new Set(values.flatMap(each => Object.keys(each.values)))
    ];
    this._update({
      rows: ordered(rows, this._state.order),
      names,
      loaded: true,
      problem: null
    });
  }

  /** Read the last lines of jobs that have ended, a few at a time. */
  private async _readResults(): Promise<void> {
    const wanted = this._state.rows
      .filter(({ job, result }) => isFinal(job.state) && result === null)
      .map(({ job }) => job);
    const next = async (): Promise<void> => {
      for (let job = wanted.shift(); job; job = wanted.shift()) {
        this._tell(job, await this._result(job.uid));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
  }

  /** The last line of a job's output; empty for one without, and where it cannot be read. */
  private async _result(job: string): Promise<string> {
    const target = { role: '', index: 0, stream: 'all' } as const;
    try {
      const { bytes } = await this._client.log(job, target, -TAIL, TAIL);
      return lastLine(new TextDecoder().decode(bytes));
    } catch (reason) {
      return asPaiError(reason).message;
    }
  }

  private _tell(job: IJobSummary, result: string): void {
    if (!this._isDisposed) {
      const rows = this._state.rows.map(row =>
        row.job === job ? { ...row, result } : row
      );
      this._update({ rows });
    }
  }

  private _update(change: Partial<ISweepState>): void {
    this._state = { ...this._state, ...change };
    this._changed.emit();
  }

  private _applied = 0;
  private _asked = 0;
  private readonly _burst: Throttler;
  private readonly _changed = new Signal<this, void>(this);
  private _isDisposed = false;
  private _state: ISweepState = {
    rows: [],
    names: [],
    order: { column: 'name', descends: false },
    loaded: false,
    problem: null
  };
  private _values: readonly ISweptValues[] | null = null;
}
