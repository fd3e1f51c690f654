/**
 * Queries of the table of jobs that the user has given names.
 */

import type { IStateDB } from '@jupyterlab/statedb';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import { FIRST_QUERY, type ITableQuery } from './table_model';

/** Where the application keeps them, for this user and workspace. */
const KEY = 'jupyter-pai:job-views';

/** A query with its name. */
export interface ISavedView {
  readonly name: string;
  readonly query: ITableQuery;
}

/** What was kept, as far as it is of this form: another version may have written it. */
export function viewsOf(value: unknown): ISavedView[] {
  const found = (value as { views?: unknown } | undefined)?.views;
  const views = Array.isArray(found) ? (found as Partial<ISavedView>[]) : [];
  return views.flatMap(({ name, query }) =>
    typeof name === 'string' && name && typeof query === 'object'
      ? [{ name, query: { ...FIRST_QUERY, ...query } }]
      : []
  );
}

/** The views of the user; without a place to keep them they last as long as the page. */
export class SavedViews {
  constructor(private readonly _state: IStateDB | null) {}

  get all(): readonly ISavedView[] {
    return this._views;
  }

  /** Emitted when {@link all} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Read what was kept. */
  async load(): Promise<void> {
    const value = await this._state?.fetch(KEY);
    this._views = viewsOf(value);
    this._changed.emit();
  }

  /** Keep a query under a name, in the place of another one of that name. */
  async save(name: string, query: ITableQuery): Promise<void> {
    await this._keep([...this._without(name), { name, query }]);
  }

  /** Forget one. */
  async remove(name: string): Promise<void> {
    await this._keep(this._without(name));
  }

  private _without(name: string): ISavedView[] {
    return this._views.filter(view => view.name !== name);
  }

  private async _keep(views: ISavedView[]): Promise<void> {
    this._views = views.sort((a, b) => a.name.localeCompare(b.name));
    this._changed.emit();
    const kept = this._views.map(({ name, query }) => ({
      name,
      query: { ...query, states: [...query.states] }
    }));
    await this._state?.save(KEY, { views: kept });
  }

  private readonly _changed = new Signal<this, void>(this);
  private _views: ISavedView[] = [];
}
