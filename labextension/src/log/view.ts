/**
 * A task's output with ANSI colours, following its end.
 */

import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { OutputAreaModel, SimplifiedOutputArea } from '@jupyterlab/outputarea';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { PanelLayout, Widget } from '@lumino/widgets';
import { problemWords } from '../words';
import type { LogModel } from './model';
import { LineStamper } from './times';

/** This near to the end counts as being there, in pixels. */
const NEAR = 24;

/** Shows one {@link LogModel}; the model may be exchanged. */
export class LogView extends Widget {
  constructor(rendermime: IRenderMimeRegistry, trans: TranslationBundle) {
    super();
    this.addClass('jp-pai-Log');
    this._trans = trans;
    this._output = new OutputAreaModel({ trusted: false });
    this._area = new SimplifiedOutputArea({ model: this._output, rendermime });
    this._note = new Widget();
    this._note.addClass('jp-pai-Log-note');
    const layout = (this.layout = new PanelLayout());
    layout.addWidget(this._note);
    layout.addWidget(this._area);
    this.node.tabIndex = 0;
    this.node.setAttribute('role', 'log');
    this.node.setAttribute('aria-label', trans.__('Log'));
    this.node.addEventListener('scroll', () => this._scrolled());
    this._show();
  }

  /** The log that is shown; null while the task has none. */
  get model(): LogModel | null {
    return this._model;
  }

  set model(model: LogModel | null) {
    this._model?.changed.disconnect(this._show, this);
    this._model = model;
    this._shown = '';
    this._stamper = null;
    this._output.clear();
    model?.changed.connect(this._show, this);
    this._follow = this._atEnd = true;
    this._line = null;
    this._lineShown = -1;
    this._show();
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._model?.changed.disconnect(this._show, this);
    super.dispose();
    this._output.dispose();
  }

  /** Add what is new; start over when the text does not continue what is shown. */
  private _show(): void {
    const state = this._model?.state;
    const text = state?.text ?? '';
    if (state && state.generation !== this._generation) {
      this._generation = state.generation;
      this._output.clear();
      this._shown = '';
      this._stamper = null;
      this._top = 0; // that it is empty for a moment is no going up
    }
    const added = text.slice(this._shown.length);
    if (added) {
      this._shown = text;
      const shown = this._stamped(added);
      this._output.add({ output_type: 'stream', name: 'stdout', text: shown });
    }
    this._note.node.textContent = this._remark();
    const atEnd = state?.atEnd !== false;
    this._follow = atEnd && (this._follow || !this._atEnd);
    this._atEnd = atEnd;
    if (state && state.line !== null && this._lineShown !== this._generation) {
      this._lineShown = this._generation;
      this._line = state.line;
      this._follow = false;
    }
  }

  /** What was added, with the times of its lines where these are shown. */
  private _stamped(added: string): string {
    const model = this._model;
    if (!model?.state.timed) {
      return added;
    }
    this._stamper ??= new LineStamper(model.times, model.state.start);
    return this._stamper.stamped(added);
  }

  /** Whether long lines are broken instead of scrolled. */
  set wrap(wrap: boolean) {
    this.toggleClass('jp-mod-wrap', wrap);
  }

  /** Bring the line that was gone to into sight, once it is rendered. */
  private _toLine(): void {
    if (this._line === null) {
      return;
    }
    const range = rangeOfLine(this._area.node, this._line);
    if (range) {
      this._line = null;
      const { top } = range.getBoundingClientRect();
      const here = this.node.getBoundingClientRect();
      this.node.scrollTop += top - here.top - here.height / 3;
      const selection = window.getSelection();
      selection?.removeAllRanges();
      selection?.addRange(range);
    }
  }

  /** Output is rendered later than it is added, so the end is followed when the area has grown. */
  protected onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._growth = new ResizeObserver(() => {
      this._toLine();
      this._toEnd();
    });
    this._growth.observe(this._area.node);
  }

  protected onBeforeDetach(msg: Message): void {
    this._growth?.disconnect();
    super.onBeforeDetach(msg);
  }

  private _toEnd(): void {
    if (this._follow) {
      this.node.scrollTop = this.node.scrollHeight;
    }
  }

  private _remark(): string {
    const state = this._model?.state;
    if (!state) {
      return this._trans.__('The task has not started yet.');
    }
    if (state.problem) {
      return problemWords(this._trans, state.problem).what;
    }
    if (state.text === '') {
      return state.complete
        ? this._trans.__('The task wrote no output.')
        : this._trans.__('No output yet.');
    }
    return '';
  }

  /**
   * Follow the end until the user goes up. Being away from it is no sign of that: the event comes late, and
   * the output may have grown meanwhile.
   */
  private _scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.node;
    if (scrollTop + clientHeight >= scrollHeight - NEAR) {
      this._follow = this._model?.state.atEnd !== false;
    } else if (scrollTop < this._top) {
      this._follow = false;
    } else {
      this._toEnd(); // the same number of lines, rendered again, grows nothing
    }
    this._top = scrollTop;
  }

  private readonly _area: SimplifiedOutputArea;
  private _atEnd = true;
  private _follow = true;
  private _generation = 0;
  private _growth: ResizeObserver | null = null;
  private _line: number | null = null;
  private _lineShown = -1;
  private _model: LogModel | null = null;
  private readonly _note: Widget;
  private readonly _output: OutputAreaModel;
  private _shown = '';
  private _stamper: LineStamper | null = null;
  private _top = 0;
  private readonly _trans: TranslationBundle;
}

/** The range of a line of what is rendered below a node; null while it is not. */
function rangeOfLine(node: Node, line: number): Range | null {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  let left = line;
  let started = false;
  while (walker.nextNode()) {
    const part = walker.currentNode as Text;
    for (let at = 0; at < part.data.length; at++) {
      if (left === 0 && !started) {
        range.setStart(part, at);
        started = true;
      }
      if (part.data[at] === '\n' && left-- === 0) {
        range.setEnd(part, at);
        return range;
      }
    }
    if (started) {
      range.setEnd(part, part.data.length);
    }
  }
  return started ? range : null;
}
