import { EditorState, Text } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { diagnosticOf, markExtensions, maskSecrets } from '../src/submit/marks';
import { fault } from './wire';

const TEXT = Text.of(['{', '  "image": 1,', '  "名称": 2', '}']);

/** The marked text of a fault at this place; null when there is no mark. */
function marked(line: number | null, column: number | null): string | null {
  const mark = diagnosticOf(TEXT, fault({ line, column }));
  return mark && TEXT.sliceString(mark.from, mark.to);
}

describe('diagnosticOf', () => {
  it.each([
    [2, 3, '"image": 1,'],
    [2, null, '  "image": 1,'],
    [3, 9, '2'],
    [2, 99, ''],
    [9, 1, '}'],
    [null, null, null],
    [0, 1, null]
  ])('marks line %s, column %s', (line, column, expected) => {
    expect(marked(line, column)).toBe(expected);
  });

  it('marks a tag in a line of YAML', () => {
    const text = Text.of(['commands:', '  - echo <% $parameters.lr %>']);
    const mark = diagnosticOf(text, fault({ line: 2, column: 10 }));
    expect(text.sliceString(mark!.from, mark!.to)).toBe('<% $parameters.lr %>');
  });

  it('shows the remedy below the message', () => {
    const told = fault({ line: 1, column: 1, hint: 'h' });
    expect(diagnosticOf(TEXT, told)?.message).toBe('m\nh');
  });
});

describe('masks of secrets', () => {
  it('move with the text, and change it only where they must', () => {
    const parent = document.body.appendChild(document.createElement('div'));
    const state = EditorState.create({
      doc: 'a: 1\nkey: xyz\n',
      extensions: markExtensions('Job document')
    });
    const view = new EditorView({ state, parent });
    const dispatch = jest.spyOn(view, 'dispatch');
    maskSecrets(parent, [[10, 13]]);
    expect(dispatch).toHaveBeenCalledTimes(1);
    expect(view.contentDOM.textContent).not.toContain('xyz');
    view.dispatch({ changes: { from: 3, to: 4, insert: '234' } });
    dispatch.mockClear();
    maskSecrets(parent, [[12, 15]]);
    expect(dispatch).not.toHaveBeenCalled();
    maskSecrets(parent, []);
    expect(view.contentDOM.textContent).toContain('xyz');
    view.destroy();
    parent.remove();
  });
});
