/**
 * A document on its way to become a job: its text, what the backend says about it, its submission.
 */

import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { Debouncer } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import { remember } from '../form/recent';
import { notationOf, read } from '../form/twin';
import type { PaiError } from '../problem';
import { asPaiError } from '../problem';
import type { IDocumentText, IPaiClient } from '../tokens';
import type { IFileText } from './encoding';
import { encode, PLAIN, sentText, sourceText } from './encoding';
import type {
  IDocumentWarning,
  IFault,
  IJobDetail,
  ITrial,
  IVerdict
} from '../types';

/** Typing rests this long before the document is checked, in milliseconds. */
const REST = 400;

/** Typing rests this long before the document is kept as a draft, in milliseconds. */
const DRAFT_REST = 1_000;

/** How far the check of the current text is. */
export type Check = 'empty' | 'unchecked' | 'valid' | 'invalid';

/** A file of the Jupyter server, and when it was changed last. */
export interface IDocumentFile {
  readonly path: string;
  readonly changed: string;
}

/** A folder of the Jupyter server that was sent, and what documents call it there. */
export interface ISentFolder {
  readonly path: string;
  readonly codeDir: string;
}

/** The document and what is known of it. */
export interface IDocumentState {
  readonly text: string;
  /** The file it came from; empty when it was typed or pasted. */
  readonly filename: string;
  /** Its file on the Jupyter server; null when it was typed, pasted or uploaded. */
  readonly file: IDocumentFile | null;
  /** The folder that it was given from the Jupyter server; null when it was given none. */
  readonly folder: ISentFolder | null;
  /** Whether it holds what is neither in its file nor submitted. */
  readonly dirty: boolean;
  /** Why it is not kept as a draft. */
  readonly unkept: PaiError | null;
  /** The name to submit under; empty: as the document says. */
  readonly name: string;
  readonly check: Check;
  /** The dialect the backend found; empty when it found none. */
  readonly dialect: string;
  /** The name the document gives the job, as it was when it was checked last. */
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
  file: null,
  folder: null,
  dirty: false,
  unkept: null,
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
  /** `isDrafted`: keep what is typed as a draft at the backend. */
  constructor(client: IPaiClient, options: { isDrafted?: boolean } = {}) {
    this._client = client;
    this._isDrafted = options.isDrafted ?? true;
    this._rest = new Debouncer(() => this.validate(), REST);
    this._draftRest = new Debouncer(() => this.keepDraft(), DRAFT_REST);
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

  /** Replace the document by a text and check it; `file` is where that stands on the Jupyter server. */
  load(
    content: string | IFileText,
    filename: string,
    file: IDocumentFile | null = null
  ): void {
    const { text, written } =
      typeof content === 'string' ? sourceText(content) : content;
    this._written = written;
    this._secretsOf = '';
    this._clean = text;
    this._replace({ text, filename, file, folder: null, dirty: false });
  }

  /** Take what was typed; it is checked, and kept as a draft, when typing rests. */
  edit(text: string): void {
    if (text !== this._state.text) {
      const dirty = text !== this._clean && text.trim() !== '';
      const { documentName } = this._state;
      this._replace({ text, dirty, documentName });
      if (this._isDrafted) {
        void this._draftRest.invoke();
      }
    }
  }

  /** The name that it is kept under while it is written. */
  get draft(): string {
    return this._draft;
  }

  /** Go on with the draft of this name. Rejects with PaiError when there is none. */
  async resume(
    draft: string,
    filename: string,
    file: IDocumentFile | null = null,
    folder: ISentFolder | null = null
  ): Promise<void> {
    const { text, written } = sourceText(
      await this._client.kept('drafts', draft)
    );
    this._draft = draft;
    this._isKept = true;
    this._written = written;
    this._clean = '';
    this._replace({ text, filename, file, folder, dirty: true });
  }

  /**
   * Keep the text as a draft; whether it is kept. Never rejects: a text that cannot be read and may hold secrets is not
   * kept, and one that the backend could not take is kept at the next change.
   */
  async keepDraft(): Promise<boolean> {
    this._keeping = this._keeping.then(() => this._keep());
    return this._keeping;
  }

  private async _keep(): Promise<boolean> {
    const { dirty, filename } = this._state;
    if (!dirty || this._isDisposed) {
      return true;
    }
    const text = this.source;
    try {
      await this._client.keep('drafts', this._draft, { text, filename });
    } catch (reason) {
      this._update({ unkept: asPaiError(reason) });
      return false;
    }
    this._isKept = true;
    this._update({ unkept: null });
    return true;
  }

  /** The document is saved or given up: its draft is needed no longer. */
  async settle(): Promise<void> {
    this._clean = this._state.text;
    this._update({ dirty: false, unkept: null });
    await this._keeping;
    if (this._isKept) {
      this._isKept = false;
      await this._client.discard('drafts', this.draft).catch(() => {
        // The gallery shows it still, and lets it be deleted there.
      });
    }
  }

  /** It was written to a file. */
  async saved(file: IDocumentFile, filename: string): Promise<void> {
    this._update({ file, filename });
    await this.settle();
  }

  /** The bytes of its file. */
  bytes(): Uint8Array {
    return encode(this._written, this._state.text);
  }

  /** Begin with a masked document; its secrets are those of a job, or to be typed where that is empty. */
  clone(document: IDocumentText, secretsOf: string): void {
    this.load(document.text, document.filename);
    this._secretsOf = secretsOf;
  }

  /** The text as it is sent: with the line breaks and the byte order mark of its file. */
  get source(): string {
    return sentText(this._written, this._state.text);
  }

  /** The document as it is sent. */
  get submitted(): IDocumentText {
    const { filename } = this._state;
    const text = this.source;
    return this._secretsOf
      ? { text, filename, secretsOf: this._secretsOf }
      : { text, filename };
  }

  /** Submit under another name than the document's. */
  rename(name: string): void {
    this._update({ name });
  }

  /** Ask the backend about the text as it is now; answers about older texts are dropped. */
  async validate(): Promise<void> {
    if (this._isDisposed || this._state.text.trim() === '') {
      return;
    }
    const turn = this._edits;
    let change: Partial<IDocumentState>;
    try {
      change = verdictState(await this._client.validate(this.submitted));
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

  /** Keep the text as a template of the user's. Rejects with PaiError. */
  async saveTemplate(name: string): Promise<void> {
    const { filename } = this._state;
    const text = this.source;
    await this._client.keep('templates', name, { text, filename });
  }

  /** Send a folder of the Jupyter server; what documents call it. Each submission sends it again. Rejects with PaiError. */
  async sendFolder(path: string): Promise<string> {
    const { codeDir } = await this._client.sendFolder(path);
    this._update({ folder: { path, codeDir } });
    return codeDir;
  }

  /** The document as it is sent, with its folder as that is now; null when that cannot be sent, which the state says. */
  async withFolder(): Promise<IDocumentText | null> {
    try {
      await this._sendAgain();
    } catch (reason) {
      this._update({ problem: asPaiError(reason) });
      return null;
    }
    return this.submitted;
  }

  /** Bring a document with a folder of the Jupyter server to what is in that now. Rejects with PaiError. */
  private async _sendAgain(): Promise<void> {
    const { folder, text } = this._state;
    if (folder && text.includes(folder.codeDir)) {
      const codeDir = await this.sendFolder(folder.path);
      this.edit(this._state.text.split(folder.codeDir).join(codeDir));
    }
  }

  /**
   * Submit the text as it is now, with `replace` in the place of the job that has the name.
   * Never rejects: the outcome says what happened.
   */
  async submit(replace = false): Promise<Outcome> {
    this._update({ submitting: true, problem: null });
    let { text } = this._state;
    try {
      await this._sendAgain();
      const { filename, name } = this._state;
      ({ text } = this._state);
      const job = await this._client.submit(this.submitted, {
        name: name.trim() || undefined,
        replace,
        key: this._keyOf(replace)
      });
      this._unanswered = null;
      remember(read(notationOf(text, filename), text)?.value);
      this._update({ submitting: false });
      void this.settle();
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
    this._draftRest.dispose();
    Signal.clearData(this);
  }

  /** Ask what would become of the text that was checked. A backend that cannot say stops nothing. */
  private async _try(turn: number): Promise<void> {
    let trial: ITrial | null = null;
    try {
      trial = await this._client.trial(this.submitted);
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
  /** The text that needs no saving. */
  private _clean = '';
  private readonly _client: IPaiClient;
  private _draft = UUID.uuid4();
  private readonly _draftRest: Debouncer;
  private readonly _isDrafted: boolean;
  /** Whether the backend has it as a draft. */
  private _isKept = false;
  private _keeping = Promise.resolve(true);
  /** The job whose secrets masked values are; empty: they are to be typed. */
  private _secretsOf = '';
  private _written = PLAIN;
  /** Counts texts, so that an answer is matched to the text it is about. */
  private _edits = 0;
  private _isDisposed = false;
  private readonly _rest: Debouncer;
  private _state = EMPTY;
  private _unanswered: { readonly of: string; readonly key: string } | null =
    null;
}
