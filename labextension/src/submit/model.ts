/**
 * A document on its way to become a job: its text, what the backend says about it, its submission.
 */

import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { Debouncer } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../request';
import { asPaiError } from '../request';
import type { IPaiClient } from '../tokens';
import type {
  IDocumentWarning,
  IFault,
  IJobDetail,
  ITrial,
  IVerdict
} from '../types';

/** Typing rests this long before the document is checked, in milliseconds. */
const REST = 400;

/** How far the check of the current text is. */
export type Check = 'empty' | 'unchecked' | 'valid' | 'invalid';

/** The document and what is known of it. */
export interface IDocumentState {
  readonly text: string;
  /** The file it came from; empty when it was typed or pasted. */
  readonly filename: string;
  /** The name to submit under; empty: as the document says. */
  readonly name: string;
  readonly check: Check;
  /** The dialect the backend found; empty when it found none. */
  readonly dialect: string;
  /** The name the document gives the job. */
  readonly documentName: string;
  readonly faults: readonly IFault[];
  readonly warnings: readonly IDocumentWarning[];
  /** What would become of it now; null while that is not known. */
  readonly trial: ITrial | null;
  readonly submitting: boolean;
  /** Why a check or submission did not happen. */
  readonly problem: PaiError | null;
}

/** What became of a submission. */
export type Outcome =
  | { readonly kind: 'submitted'; readonly job: IJobDetail }
  | { readonly kind: 'invalid'; readonly faults: readonly IFault[] }
  | { readonly kind: 'failed'; readonly problem: PaiError };

const UNCHECKED = {
  check: 'unchecked',
  dialect: '',
  documentName: '',
  faults: [],
  warnings: [],
  trial: null,
  problem: null
} as const;

const EMPTY: IDocumentState = {
  ...UNCHECKED,
  text: '',
  filename: '',
  name: '',
  check: 'empty',
  submitting: false
};

function verdictState(verdict: IVerdict): Partial<IDocumentState> {
  return {
    check: verdict.valid ? 'valid' : 'invalid',
    dialect: verdict.dialect ?? '',
    documentName: verdict.name ?? '',
    faults: verdict.errors,
    warnings: verdict.warnings,
    problem: null
  };
}

/** The model of the submission page. */
export class DocumentModel implements IDisposable {
  constructor(client: IPaiClient) {
    this._client = client;
    this._rest = new Debouncer(() => this.validate(), REST);
  }

  get state(): IDocumentState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Replace the document by a file's text and check it. */
  load(text: string, filename: string): void {
    // The editor knows one kind of line break; with another, its text would never equal this one.
    this._replace({ text: text.replace(/\r\n?/g, '\n'), filename });
  }

  /** Take what was typed; it is checked when typing rests. */
  edit(text: string): void {
    if (text !== this._state.text) {
      this._replace({ text });
    }
  }

  /** Submit under another name than the document's. */
  rename(name: string): void {
    this._update({ name });
  }

  /** Ask the backend about the text as it is now; answers about older texts are dropped. */
  async validate(): Promise<void> {
    const { text, filename } = this._state;
    if (this._isDisposed || text.trim() === '') {
      return;
    }
    const turn = this._edits;
    let change: Partial<IDocumentState>;
    try {
      change = verdictState(await this._client.validate({ text, filename }));
    } catch (reason) {
      change = { problem: asPaiError(reason) };
    }
    if (turn === this._edits && !this._isDisposed) {
      this._update(change);
      if (change.check === 'valid') {
        await this._try(turn);
      }
    }
  }

  /**
   * Submit the text as it is now, with `replace` in the place of the job that has the name.
   * Never rejects: the outcome says what happened.
   */
  async submit(replace = false): Promise<Outcome> {
    const { text, filename, name } = this._state;
    this._update({ submitting: true, problem: null });
    try {
      const job = await this._client.submit(
        { text, filename },
        { name: name.trim() || undefined, replace, key: this._keyOf(replace) }
      );
      this._unanswered = null;
      this._update({ submitting: false });
      return { kind: 'submitted', job };
    } catch (reason) {
      const problem = asPaiError(reason);
      if (problem.status >= 400 && problem.status < 500) {
        this._unanswered = null;
      }
      return this._refused(problem, text);
    }
  }

  /** The key of what is submitted now: the same as before while nothing has changed and no answer has come. */
  private _keyOf(replace: boolean): string {
    const { text, filename, name } = this._state;
    const of = JSON.stringify([text, filename, name.trim(), replace]);
    if (this._unanswered?.of !== of) {
      this._unanswered = { of, key: UUID.uuid4() };
    }
    return this._unanswered.key;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._rest.dispose();
    Signal.clearData(this);
  }

  /** Ask what would become of the text that was checked. A backend that cannot say stops nothing. */
  private async _try(turn: number): Promise<void> {
    const { text, filename } = this._state;
    let trial: ITrial | null = null;
    try {
      trial = await this._client.trial({ text, filename });
    } catch {
      // An older backend, or one that is away: the check above has said what is to be said.
    }
    if (turn === this._edits) {
      this._update({ trial });
    }
  }

  private _refused(problem: PaiError, text: string): Outcome {
    const faults = problem.faults;
    const about = text === this._state.text && faults.length > 0;
    this._update({
      submitting: false,
      ...(about ? { check: 'invalid', faults } : { problem })
    });
    return about ? { kind: 'invalid', faults } : { kind: 'failed', problem };
  }

  private _replace(change: Partial<IDocumentState>): void {
    this._edits++;
    this._update({ ...UNCHECKED, ...change });
    if (this._state.text.trim() === '') {
      this._update({ check: 'empty' });
    } else {
      void this._rest.invoke();
    }
  }

  private _update(change: Partial<IDocumentState>): void {
    if (!this._isDisposed) {
      this._state = { ...this._state, ...change };
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _client: IPaiClient;
  /** Counts texts, so that an answer is matched to the text it is about. */
  private _edits = 0;
  private _isDisposed = false;
  private readonly _rest: Debouncer;
  private _state = EMPTY;
  private _unanswered: { readonly of: string; readonly key: string } | null =
    null;
}
