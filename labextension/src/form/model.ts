/**
 * The form of a document: its value as the text says it, and changes of the value as changes of the text.
 */

import type { IDisposable } from '@lumino/disposable';
import { Debouncer } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../problem';
import { asPaiError } from '../problem';
import type { DocumentModel } from '../submit/model';
import type { IPaiClient, Kept } from '../tokens';
import type { IClusterUse, IDraft, IFault, ITemplate } from '../types';
import type { Json, Path } from './paths';
import { isObject, pathOf, same, valueAt } from './paths';
import type { FormDialect, IFormSchema } from './schema';
import { dialectOf } from './schema';
import type { Notation } from './twin';
import {
  edited,
  LARGEST_TEXT,
  NotFaithful,
  notationOf,
  pathAt,
  read,
  swappedText
} from './twin';

/** Typing rests this long before the form follows the text, in milliseconds. */
const REST = 120;

/** Why the form does not show the text as it is. */
export type Trouble = 'unreadable' | 'large' | 'refused';

/** The form and what is known of it. */
export interface IFormState {
  /** The document's value; the last one that could be read. Null before there was any. */
  readonly value: Json | null;
  readonly notation: Notation;
  readonly dialect: FormDialect;
  /** The schema of the dialect; null until the backend has told it. */
  readonly schema: IFormSchema | null;
  readonly trouble: Trouble | null;
  /** What the backend found wrong, but for values that were changed since. */
  readonly faults: readonly IFault[];
  /** Who uses the cluster, for those who choose a part of it; null when that is not known. */
  readonly use: IClusterUse | null;
  /** Documents to begin with; null until the backend has told them. */
  readonly templates: readonly ITemplate[] | null;
  readonly drafts: readonly IDraft[];
  /** What the cursor of the text stands at; null until it was moved. */
  readonly pointed: Path | null;
  /** Why the schema or the templates are not there. */
  readonly problem: PaiError | null;
}

/** Asks for each schema once. */
export class Schemas {
  constructor(client: IPaiClient) {
    this._client = client;
  }

  /** The schema of a dialect. Rejects with PaiError, and asks again the next time. */
  of(dialect: FormDialect): Promise<IFormSchema> {
    const known = this._known.get(dialect);
    if (known) {
      return known;
    }
    const asked = this._client.schema(dialect);
    this._known.set(dialect, asked);
    asked.catch(() => this._known.delete(dialect));
    return asked;
  }

  private readonly _client: IPaiClient;
  private readonly _known = new Map<FormDialect, Promise<IFormSchema>>();
}

/** The model of the form beside a document's text. */
export class FormModel implements IDisposable {
  constructor(document: DocumentModel, client: IPaiClient, schemas: Schemas) {
    this._document = document;
    this._client = client;
    this._schemas = schemas;
    this._rest = new Debouncer(() => this._follow(), REST);
    document.changed.connect(this._documentChanged, this);
    this._documentChanged();
  }

  get state(): IFormState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Take a value as the form has it now. A change that the text cannot take is refused, and told. */
  set(value: Json): void {
    this._edit(value, (notation, text, before) =>
      edited(notation, text, before, value)
    );
  }

  /** Exchange an item of the list or object at a path with the one behind it. */
  swap(path: Path, index: number, value: Json): void {
    this._edit(value, (notation, text, before) =>
      swappedText(notation, text, before, path, index)
    );
  }

  /** The cursor of the text stands at an offset now. */
  point(offset: number): void {
    const { text } = this._document.state;
    const { value, notation, pointed } = this._state;
    if (value === null || text !== this._text) {
      return;
    }
    const path = pathAt(notation, text, offset);
    if (pointed?.join('\n') !== path.join('\n')) {
      this._update({ pointed: path });
    }
  }

  /** Ask who uses the cluster. Never rejects: without it pickers offer less. */
  async look(): Promise<void> {
    try {
      this._update({ use: await this._client.use() });
    } catch {
      // The list of jobs says that the backend is away; free text is still taken.
      this._update({ use: null });
    }
  }

  /** Names in a folder of the backend's storage; folders end with a slash. Never rejects: free text is taken, too. */
  async names(folder: string): Promise<readonly string[]> {
    try {
      const found = await this._client.files(folder);
      return found.map(({ name, kind }) =>
        kind === 'directory' ? `${name}/` : name
      );
    } catch {
      // A folder that is not there yet, or no backend: there is nothing to suggest.
      return [];
    }
  }

  /** Ask for templates and drafts. Never rejects. */
  async offer(): Promise<void> {
    let change: Partial<IFormState>;
    try {
      const [templates, drafts] = await Promise.all([
        this._client.templates(),
        this._client.drafts()
      ]);
      change = { templates, drafts, problem: null };
    } catch (reason) {
      change = { templates: [], problem: asPaiError(reason) };
    }
    this._update(change);
  }

  /** Begin with a template or draft. Never rejects. */
  async begin(kind: Kept, name: string, filename: string): Promise<void> {
    try {
      if (kind === 'drafts') {
        await this._document.resume(name, filename);
      } else {
        this._document.load(await this._client.kept(kind, name), filename);
      }
    } catch (reason) {
      this._update({ problem: asPaiError(reason) });
    }
  }

  /** Delete a template or draft of the user's, and ask for those that are left. Never rejects. */
  async discard(kind: Kept, name: string): Promise<void> {
    try {
      await this._client.discard(kind, name);
    } catch (reason) {
      this._update({ problem: asPaiError(reason) });
      return;
    }
    await this.offer();
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._document.changed.disconnect(this._documentChanged, this);
    this._rest.dispose();
    Signal.clearData(this);
  }

  private _edit(
    value: Json,
    change: (notation: Notation, text: string, before: Json) => string
  ): void {
    const { value: before, notation, faults } = this._state;
    const { text } = this._document.state;
    if (before === null || text !== this._text || same(before, value)) {
      return;
    }
    let changed: string;
    try {
      changed = change(notation, text, before);
    } catch (reason) {
      if (!(reason instanceof NotFaithful)) {
        throw reason;
      }
      this._update({ trouble: 'refused' });
      return;
    }
    this._text = changed;
    const left = faults.filter(({ path }) =>
      same(
        valueAt(before, pathOf(path)) ?? null,
        valueAt(value, pathOf(path)) ?? null
      )
    );
    const isAny = left.length < faults.length;
    this._update({ value, trouble: null, faults: isAny ? left : faults });
    this._document.edit(changed);
  }

  private _documentChanged(): void {
    const { text, check, faults } = this._document.state;
    if (text !== this._text) {
      void this._rest.invoke();
    }
    const isTold = check === 'valid' || check === 'invalid';
    if (isTold && faults !== this._state.faults) {
      this._update({ faults });
    }
  }

  /** Bring the form to the text. */
  private _follow(): void {
    const { text, filename } = this._document.state;
    if (this._isDisposed || text === this._text) {
      return;
    }
    this._text = text;
    const notation = notationOf(text, filename);
    if (text.length > LARGEST_TEXT) {
      this._update({ notation, trouble: 'large', value: null });
      return;
    }
    const found = read(notation, text);
    if (!found || !isObject(found.value)) {
      const isEmpty = text.trim() === '';
      this._update(
        isEmpty
          ? { notation, trouble: null, value: null }
          : { notation, trouble: 'unreadable' }
      );
      return;
    }
    const dialect = dialectOf(found.value, text);
    this._update({ notation, dialect, value: found.value, trouble: null });
    void this._take(dialect);
  }

  private async _take(dialect: FormDialect): Promise<void> {
    if (this._state.schema?.['x-dialect'] === dialect) {
      return;
    }
    let change: Partial<IFormState>;
    try {
      change = { schema: await this._schemas.of(dialect), problem: null };
    } catch (reason) {
      change = { problem: asPaiError(reason) };
    }
    if (dialect === this._state.dialect) {
      this._update(change);
    }
  }

  private _update(change: Partial<IFormState>): void {
    if (!this._isDisposed) {
      this._state = { ...this._state, ...change };
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _client: IPaiClient;
  private readonly _document: DocumentModel;
  private _isDisposed = false;
  private readonly _rest: Debouncer;
  private readonly _schemas: Schemas;
  private _state: IFormState = {
    value: null,
    notation: 'json',
    dialect: 'v1',
    schema: null,
    trouble: null,
    faults: [],
    use: null,
    templates: null,
    drafts: [],
    pointed: null,
    problem: null
  };
  /** The text that the form shows. */
  private _text = '';
}
