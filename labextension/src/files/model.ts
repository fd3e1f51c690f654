/**
 * A folder of the backend's storage, what of it is looked at, and uploads to it.
 */

import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../problem';
import { asPaiError } from '../problem';
import type { IPaiClient } from '../tokens';
import type { IFileEntry } from '../types';
import type { Column, IOrder } from './order';
import { ordered } from './order';
import { folderOf, nameOf, pathFrom, within } from './paths';
import type { IPreview } from './preview';
import { previewOf } from './preview';
import { Uploads } from './uploads';

/** Names of a folder that are read at most; the backend gives 10,000 at once. */
const MOST_NAMES = 50_000;

/** What is known of the folder. */
export interface IFilesState {
  /** Its path; empty until one was opened. */
  readonly path: string;
  /** Whether it is being read for the first time. */
  readonly isLoading: boolean;
  /** Folders first, in the order that was chosen. */
  readonly entries: readonly IFileEntry[];
  /** Whether it holds more than are listed. */
  readonly isTruncated: boolean;
  readonly order: IOrder;
  /** Why the list is not there, or may be out of date. */
  readonly problem: PaiError | null;
  /** The path of the file that was chosen last in this folder; empty: none. */
  readonly chosen: string;
  /** The file that is looked at. */
  readonly preview: IPreview | null;
}

/** The folder as it was read. */
interface IFolder {
  readonly entries: readonly IFileEntry[];
  readonly isTruncated: boolean;
}

/** The model of a page or dialog of files. */
export class FilesModel implements IDisposable {
  constructor(private readonly _client: IPaiClient) {
    this.uploads = new Uploads(_client);
    this.uploads.changed.connect(() => this._changed.emit());
    this.uploads.rested.connect(() => void this.refresh());
  }

  /** Files on their way to the storage. */
  readonly uploads: Uploads;

  get state(): IFilesState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced, or an upload has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Open the user's own folder. Never rejects. */
  async openHome(): Promise<void> {
    await this.open((await this._home()) || '/');
  }

  /** Open a folder, or the folder of a file and that file. The state says what went wrong. */
  async open(typed: string): Promise<void> {
    const path = pathFrom(typed);
    const isOther = path !== this._state.path;
    if (isOther) {
      const none = { entries: [], isTruncated: false };
      this._update({ ...none, path, chosen: '', preview: null });
    }
    this._update({ isLoading: isOther, problem: null });
    const isLast = this._turn();
    try {
      const found = await this._read(path);
      if (!isLast()) {
        return;
      }
      if (!found) {
        await this.open(folderOf(path));
        await this.look(nameOf(path));
        return;
      }
      const entries = ordered(found.entries, this._state.order);
      this._update({ ...found, entries, isLoading: false });
    } catch (reason) {
      if (isLast()) {
        this._update({ isLoading: false, problem: asPaiError(reason) });
      }
    }
  }

  /** Read the folder again. Never rejects. */
  async refresh(): Promise<void> {
    if (this._state.path) {
      await this.open(this._state.path);
    }
  }

  /** Order by a column; by the same one again the other way round. */
  orderBy(by: Column): void {
    const { entries, order } = this._state;
    const isDescending = order.by === by && !order.isDescending;
    const next = { by, isDescending };
    this._update({ order: next, entries: ordered(entries, next) });
  }

  /** Mark a file of the folder as the chosen one. */
  choose(name: string): void {
    this._update({ chosen: within(this._state.path, name) });
  }

  /** Look at a file of the folder. The state says what went wrong. */
  async look(name: string): Promise<void> {
    this.choose(name);
    const path = this._state.chosen;
    const entry = this._state.entries.find(each => each.name === name);
    const { size = 0, modified = null } = entry ?? {};
    const about = { path, name, size, modified };
    this._update({ preview: { ...about, shown: { kind: 'loading' } } });
    let preview: IPreview;
    try {
      preview = await previewOf(this._client, path, name);
    } catch (reason) {
      const problem = asPaiError(reason);
      preview = { ...about, shown: { kind: 'failed', problem } };
    }
    if (this._state.preview?.path === path) {
      this._update({ preview });
    }
  }

  /** Look at no file. */
  unlook(): void {
    this._update({ preview: null, chosen: '' });
  }

  /** The address of a file, to save it. */
  address(path: string): string {
    return this._client.fileAddress(path);
  }

  /** Those of the names that the folder has now. Rejects with PaiError. */
  async existing(names: readonly string[]): Promise<string[]> {
    let found: IFolder | null = null;
    try {
      found = await this._read(this._state.path);
    } catch (reason) {
      // A folder that is not there yet is made by the first upload.
      if (asPaiError(reason).status !== 404) {
        throw reason;
      }
    }
    const there = new Set(found?.entries.map(each => each.name));
    return names.filter(name => there.has(name));
  }

  /** Make a folder in this one, and open it. Rejects with PaiError. */
  async makeFolder(name: string): Promise<void> {
    const path = within(this._state.path, name);
    await this._client.makeFolder(path);
    await this.open(path);
  }

  /** Delete a file, or a folder with all that is in it. Rejects with PaiError. */
  async remove(path: string): Promise<void> {
    await this._client.removeFile(path);
    if (this._state.preview?.path === path) {
      this.unlook();
    }
    await this.refresh();
  }

  dispose(): void {
    this._isDisposed = true;
    this.uploads.dispose();
    Signal.clearData(this);
  }

  /** All that a folder holds, as far as it is listed; null: the path is a file. */
  private async _read(path: string): Promise<IFolder | null> {
    const entries: IFileEntry[] = [];
    let isTruncated = true;
    while (isTruncated && entries.length < MOST_NAMES) {
      const after = entries[entries.length - 1]?.name ?? '';
      const page = await this._client.listing(path, after);
      if (!page) {
        return null;
      }
      entries.push(...page.data);
      isTruncated = page.truncated && page.data.length > 0;
    }
    if (path === '/') {
      await this._addHome(entries);
    }
    return { entries, isTruncated };
  }

  /** The user's own folder is made when something is put into it, and is theirs before. */
  private async _addHome(entries: IFileEntry[]): Promise<void> {
    const name = nameOf(await this._home());
    if (name && !entries.some(each => each.name === name)) {
      entries.push({ name, kind: 'directory', size: 0, modified: null });
    }
  }

  /** The path of the user's own folder; empty while it is not known. */
  private async _home(): Promise<string> {
    try {
      this._user ||= (await this._client.me()).username;
      return `/${this._user}`;
    } catch {
      return '';
    }
  }

  /** Tells whether no other folder was opened since. */
  private _turn(): () => boolean {
    const turn = ++this._turns;
    return () => turn === this._turns;
  }

  private _update(change: Partial<IFilesState>): void {
    if (!this._isDisposed) {
      this._state = { ...this._state, ...change };
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _isDisposed = false;
  private _state: IFilesState = {
    path: '',
    isLoading: false,
    entries: [],
    isTruncated: false,
    order: { by: 'name', isDescending: false },
    problem: null,
    chosen: '',
    preview: null
  };
  private _turns = 0;
  private _user = '';
}
