/**
 * The output of one run of a task: its last part, followed; or any other part of it.
 */

import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { PaiError } from '../problem';
import { asPaiError } from '../problem';
import { ResumedStream } from '../stream';
import type { ILogPage, ILogTarget, IPaiClient } from '../tokens';
import type { ILogMatch, ILogTimes } from '../types';
import type { ILogPiece } from './pages';
import { pieceOf } from './pages';
import { LogTimes } from './times';

/** Bytes that are read at a time. */
const PAGE_BYTES = 256 * 1024;

/** Characters kept; a browser renders more only slowly. */
const KEEP = 1024 * 1024;

/** Bytes shown above a place that is gone to. */
const ABOVE_BYTES = 32 * 1024;

/** Lines that a search finds, at most. */
const MAX_MATCHES = 1000;

/** Bytes whose times are asked for at a time. */
const MAX_TIMED = 256 * 1024;

/** What was looked for, and what was found so far. */
export interface ILogSearch {
  readonly pattern: string;
  readonly matches: readonly ILogMatch[];
  /** How far the log was searched. */
  readonly searched: number;
  /** Whether nothing more will be found. */
  readonly complete: boolean;
  readonly problem: PaiError | null;
}

/** The log as far as it is known. */
export interface ILogState {
  /** The part of the output that is shown. */
  readonly text: string;
  /** Changes when `text` does not continue what was there before. */
  readonly generation: number;
  /** Whether there is output before `text`. */
  readonly cut: boolean;
  /** Whether `text` leads up to the end, and new output is added to it. */
  readonly atEnd: boolean;
  /** Whether new output is pushed at this moment. */
  readonly live: boolean;
  /** Whether all output there will ever be has been read. */
  readonly complete: boolean;
  /** Why another part could not be read. */
  readonly problem: PaiError | null;
  /** Line of `text` that was gone to, from 0; null when none was. */
  readonly line: number | null;
  readonly search: ILogSearch | null;
  /** Offset of the first byte of `text`. */
  readonly start: number;
  /** Whether lines are shown with the times at which they came. */
  readonly timed: boolean;
}

/** The model of a task's log. */
export class LogModel implements IDisposable {
  /** `taskUid` names the attempt: a retried task has a new log. */
  constructor(
    private readonly _client: IPaiClient,
    private readonly _job: string,
    readonly target: ILogTarget,
    readonly taskUid: string,
    timed = false
  ) {
    this._state = { ...this._state, timed };
  }

  /** When the bytes that are shown came, once {@link ILogState.timed}. */
  readonly times = new LogTimes();

  get state(): ILogState {
    return this._state;
  }

  /** Emitted when {@link state} was replaced. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The address of the whole output as a file. */
  get url(): string {
    return this._client.logFile(this._job, this.target);
  }

  /** Read the last part, then follow. */
  start(): void {
    this._stream ??= new ResumedStream({
      open: () => this._open(),
      receive: data => this._receive(data as ArrayBuffer | string),
      connected: live => {
        this._hasBroken ||= !live;
        this._update({ live });
      },
      completed: () => this._update({ complete: true, live: false })
    });
  }

  /** Show lines with the times at which they came, or without. */
  async showTimes(timed: boolean): Promise<void> {
    this._update({ timed });
    await this._read(async () => {
      const { end } = this._pieces[this._pieces.length - 1];
      for (let at = this._state.start; timed && at < end; at += MAX_TIMED) {
        await this._learn(at, Math.min(end - at, MAX_TIMED));
      }
      this._show(this._pieces, { cut: this._state.cut });
    });
    if (this._state.atEnd && !this._state.complete && !this._isDisposed) {
      this._stream?.dispose();
      this._stream = null;
      this.start(); // from here on with times, or without
    }
  }

  /** Show the output before what is shown, too. Where that is too much, the end is left and no longer followed. */
  async showEarlier(): Promise<void> {
    const [first] = this._pieces;
    await this._read(async () => {
      const from = Math.max(0, first.start - PAGE_BYTES);
      const page = await this._page(from, first.start - from);
      // What rotation took is skipped, so that more than is missing may have come.
      const missing = page.bytes.slice(0, first.start - page.offset);
      const cut = { head: page.offset > 0, tail: false };
      const piece = pieceOf(missing, page.offset, cut);
      const isOldest = piece.start >= first.start;
      const pieces = isOldest ? this._pieces : [piece, ...this._pieces];
      let kept = sizeOf(pieces);
      while (kept > KEEP && pieces.length > 1) {
        kept -= pieces.pop()?.text.length ?? 0;
        this._leaveEnd();
      }
      const line = isOldest ? null : linesOf(piece.text);
      this._show(pieces, { cut: !isOldest && piece.start > 0, line });
    });
  }

  /** Show the output behind what is shown, too; at the end it is followed again. */
  async showLater(): Promise<void> {
    const { end } = this._pieces[this._pieces.length - 1];
    await this._read(async () => {
      const page = await this._page(end, PAGE_BYTES);
      if (page.bytes.byteLength < PAGE_BYTES) {
        this.showEnd();
        return;
      }
      const cut = { head: false, tail: true };
      const piece = pieceOf(page.bytes, page.offset, cut);
      const pieces = [...this._pieces, piece];
      while (sizeOf(pieces) > KEEP && pieces.length > 1) {
        pieces.shift();
      }
      this._show(pieces, { cut: pieces[0].start > 0 });
    });
  }

  /** Show the part around a byte. */
  async goTo(offset: number): Promise<void> {
    await this._read(async () => {
      const from = Math.max(0, offset - ABOVE_BYTES);
      const page = await this._page(from, PAGE_BYTES);
      const tail = page.bytes.byteLength === PAGE_BYTES;
      const cut = { head: page.offset > 0 && from < offset, tail };
      const piece = pieceOf(page.bytes, page.offset, cut);
      this._leaveEnd();
      const above = bytesOf(piece.text).subarray(0, offset - piece.start);
      const line = linesOf(new TextDecoder().decode(above));
      this._show([piece], { cut: piece.start > 0, line });
    });
  }

  /** Show the last part, and follow. */
  showEnd(): void {
    this._leaveEnd();
    this._offset = null;
    this._decoder = new TextDecoder();
    this._update({ atEnd: true, complete: false });
    this.start();
  }

  /** Look for lines that match a regular expression, from the beginning; an empty one ends the search. */
  async search(pattern: string, ignoreCase: boolean): Promise<void> {
    const turn = ++this._searches;
    let search: ILogSearch = {
      pattern,
      matches: [],
      searched: 0,
      complete: false,
      problem: null
    };
    this._update({ search: pattern ? search : null });
    while (pattern && !search.complete) {
      try {
        const found = await this._client.searchLog(
          this._job,
          this.target,
          pattern,
          ignoreCase,
          search.searched
        );
        const matches = [...search.matches, ...found.matches];
        search = {
          ...search,
          matches,
          searched: found.next,
          complete: found.complete || matches.length >= MAX_MATCHES
        };
      } catch (reason) {
        search = { ...search, complete: true, problem: asPaiError(reason) };
      }
      if (turn !== this._searches || this._isDisposed) {
        return;
      }
      this._update({ search });
    }
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._stream?.dispose();
    Signal.clearData(this);
  }

  private async _open(): Promise<WebSocket> {
    try {
      if (this._offset === null) {
        await this._readTail();
      } else if (this._hasBroken) {
        await this._page(this._offset, 0); // a socket that is refused tells no reason, a request does
      }
      this._update({ problem: null });
    } catch (reason) {
      this._update({ problem: asPaiError(reason) });
      throw reason;
    }
    const from = this._offset ?? 0;
    const { timed } = this._state;
    return this._client.followLog(this._job, this.target, from, timed);
  }

  private async _readTail(): Promise<void> {
    const page = await this._page(-PAGE_BYTES, PAGE_BYTES);
    if (this._isDisposed) {
      return;
    }
    const bytes = new Uint8Array(page.bytes);
    const cut = page.offset > 0;
    const piece = pieceOf(page.bytes, page.offset, { head: cut, tail: false });
    // Decoded again, so that a character that is not complete yet goes on with what follows.
    const shown = bytes.subarray(piece.start - page.offset);
    const text = this._decoder.decode(shown, { stream: true });
    this._offset = page.next;
    this._show([{ ...piece, text }], { cut });
  }

  private _append(bytes: ArrayBuffer): void {
    const start = this._offset ?? 0;
    this._offset = start + bytes.byteLength;
    const text = this._decoder.decode(bytes, { stream: true });
    const pieces = [...this._pieces];
    const last = pieces.pop() ?? { start, end: start, text: '' };
    pieces.push({ ...last, end: this._offset, text: last.text + text });
    if (sizeOf(pieces) <= KEEP) {
      this._pieces = pieces;
      this._update({ text: this._state.text + text });
      return;
    }
    // Half goes at once, so that trimming is rare and following stays cheap.
    const all = this._state.text + text;
    const half = all.slice(-KEEP / 2);
    const kept = half.slice(half.indexOf('\n') + 1);
    const lost = bytesOf(all.slice(0, all.length - kept.length)).length;
    const piece = { start: pieces[0].start + lost, end: this._offset };
    this._show([{ ...piece, text: kept }], { cut: true });
  }

  /** The output is no longer followed. */
  private _leaveEnd(): void {
    this._stream?.dispose();
    this._stream = null;
    this._update({ atEnd: false, live: false });
  }

  private async _page(offset: number, limit: number): Promise<ILogPage> {
    const page = await this._client.log(this._job, this.target, offset, limit);
    if (this._state.timed && page.bytes.byteLength > 0) {
      await this._learn(page.offset, page.bytes.byteLength);
    }
    return page;
  }

  private async _learn(offset: number, limit: number): Promise<void> {
    const { _job: job, target } = this;
    const { times } = await this._client.logTimes(job, target, offset, limit);
    this.times.learn(times);
  }

  /** Output, or a text with the times of the output that comes next. */
  private _receive(data: ArrayBuffer | string): void {
    if (typeof data === 'string') {
      this.times.learn((JSON.parse(data) as ILogTimes).times);
    } else {
      this._append(data);
    }
  }

  /** Read one part at a time; a failure is said and changes nothing. */
  private async _read(read: () => Promise<void>): Promise<void> {
    if (this._reading || this._pieces.length === 0) {
      return;
    }
    this._reading = true;
    try {
      await read();
      this._update({ problem: null });
    } catch (reason) {
      this._update({ problem: asPaiError(reason) });
    } finally {
      this._reading = false;
    }
  }

  private _show(pieces: ILogPiece[], change: Partial<ILogState>): void {
    this._pieces = pieces;
    this._update({
      line: null,
      ...change,
      start: pieces[0]?.start ?? 0,
      text: pieces.map(piece => piece.text).join(''),
      generation: this._state.generation + 1
    });
  }

  private _update(change: Partial<ILogState>): void {
    if (!this._isDisposed) {
      this._state = { ...this._state, ...change };
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _decoder = new TextDecoder();
  private _hasBroken = false;
  private _isDisposed = false;
  private _offset: number | null = null;
  private _pieces: ILogPiece[] = [];
  private _reading = false;
  private _searches = 0;
  private _state: ILogState = {
    text: '',
    generation: 0,
    cut: false,
    atEnd: true,
    live: false,
    complete: false,
    problem: null,
    line: null,
    search: null,
    start: 0,
    timed: false
  };
  private _stream: ResumedStream | null = null;
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** How many lines end in a text. */
function linesOf(text: string): number {
  return text.split('\n').length - 1;
}

/** Characters of the pieces together. */
function sizeOf(pieces: readonly ILogPiece[]): number {
  return pieces.reduce((sum, piece) => sum + piece.text.length, 0);
}
