/**
 * Faults of a document as marks in the editor.
 */

import type { Diagnostic } from '@codemirror/lint';
import { diagnosticCount, lintGutter, setDiagnostics } from '@codemirror/lint';
import type { Extension, Text } from '@codemirror/state';
import { RangeSet, StateEffect, StateField } from '@codemirror/state';
import type { DecorationSet } from '@codemirror/view';
import { Decoration, EditorView, WidgetType } from '@codemirror/view';
import type { IFault } from '../types';

/** Stands for a secret in the text, and tells nothing of it. */
class Dots extends WidgetType {
  eq(): boolean {
    return true;
  }

  toDOM(): HTMLElement {
    const dots = document.createElement('span');
    dots.className = 'jp-pai-Document-secret';
    dots.textContent = '••••••';
    return dots;
  }
}

const DOTS = Decoration.replace({ widget: new Dots() });
const setSecrets = StateEffect.define<DecorationSet>();
const secrets = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (shown, { changes, effects }) =>
    effects.find(effect => effect.is(setSecrets))?.value ?? shown.map(changes),
  provide: field => [
    EditorView.decorations.from(field),
    EditorView.atomicRanges.of(view => view.state.field(field))
  ]
});

/** Mask these ranges of the editor in `host`, and no others. */
export function maskSecrets(
  host: HTMLElement,
  ranges: readonly (readonly [number, number])[]
): void {
  const found = ranges
    .filter(([from, to]) => from < to)
    .map(([from, to]) => DOTS.range(from, to));
  const view = EditorView.findFromDOM(host);
  const wanted = Decoration.set(found, true);
  // They move with what is typed: mostly they are where they belong.
  if (view && !RangeSet.eq([view.state.field(secrets)], [wanted])) {
    view.dispatch({ effects: setSecrets.of(wanted) });
  }
}

/** What an editor needs to show marks, and to have a name for those who do not see it. */
export function markExtensions(label: string): Extension[] {
  return [
    lintGutter(),
    secrets,
    EditorView.contentAttributes.of({ 'aria-label': label })
  ];
}

/**
 * The place of a fault in the text; null when it names no line.
 *
 * A fault marks from its column to the end of the line: the wire gives a point, and one
 * character is easily overlooked. Lines beyond the text mark its last line.
 */
export function diagnosticOf(text: Text, fault: IFault): Diagnostic | null {
  if (fault.line === null || fault.line < 1) {
    return null;
  }
  const line = text.line(Math.min(fault.line, text.lines));
  const column = Math.max(1, fault.column ?? 1);
  const from = Math.min(line.from + column - 1, line.to);
  const message = fault.hint
    ? `${fault.message}\n${fault.hint}`
    : fault.message;
  return { from, to: line.to, severity: 'error', message };
}

/** Replace the marks of the editor in `host` by those of `faults`. */
export function showFaults(host: HTMLElement, faults: readonly IFault[]): void {
  const view = EditorView.findFromDOM(host);
  if (!view) {
    return;
  }
  const diagnostics = faults
    .map(fault => diagnosticOf(view.state.doc, fault))
    .filter((mark): mark is Diagnostic => mark !== null);
  if (diagnostics.length > 0 || diagnosticCount(view.state) > 0) {
    view.dispatch(setDiagnostics(view.state, diagnostics));
  }
}
