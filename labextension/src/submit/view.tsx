/**
 * The submission page: a document in an editor, and what the backend says about it.
 */

import type { IEditorServices } from '@jupyterlab/codeeditor';
import { CodeEditor, CodeEditorWrapper } from '@jupyterlab/codeeditor';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import { InputGroup } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import { Panel } from '@lumino/widgets';
import * as React from 'react';
import { paiIcon } from '../icons';
import { ModelView, ProblemBox, WarningBoxes } from '../components';
import { CommandIDs, DOMAIN } from '../tokens';
import type { IFault } from '../types';
import { dialectWord } from '../words';
import type { FormModel } from '../form/model';
import { FormPane } from '../form/pane';
import type { Path } from '../form/paths';
import { notationOf, rangeOf } from '../form/twin';
import { markExtensions, showFaults } from './marks';
import type { DocumentModel } from './model';
import { TrialNote } from './trial';

/** Which halves of the page are shown. */
type Shown = 'form' | 'both' | 'text';

/** What the parts of the page need. */
interface IPageProps {
  readonly model: DocumentModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
  readonly jump: (fault: IFault) => void;
  readonly show: (shown: Shown) => void;
  readonly form: FormModel;
  readonly language: string;
}

/** Where a fault is, in words. */
export function placeOf(trans: TranslationBundle, fault: IFault): string {
  if (fault.line !== null && fault.column !== null) {
    return trans.__('Line %1, column %2', fault.line, fault.column);
  }
  return fault.line !== null
    ? trans.__('Line %1', fault.line)
    : fault.path || trans.__('Document');
}

/** The MIME type that colours the text. */
export function mimeTypeOf(text: string, filename: string): string {
  return notationOf(text, filename) === 'yaml'
    ? 'text/x-yaml'
    : 'application/json';
}

function Faults(props: IPageProps): JSX.Element {
  const { model, trans, jump } = props;
  return (
    <ul className="jp-pai-Faults" aria-label={trans.__('Errors')}>
      {model.state.faults.map((fault, place) => (
        <li key={`${fault.path}-${place}`}>
          <button
            className="jp-pai-Faults-fault"
            disabled={fault.line === null}
            onClick={() => jump(fault)}
          >
            <strong>{placeOf(trans, fault)}</strong>
            <span>{fault.message}</span>
            {fault.hint && <em>{fault.hint}</em>}
          </button>
        </li>
      ))}
    </ul>
  );
}

/** One line on how the document stands. */
export function verdictLine(
  trans: TranslationBundle,
  model: DocumentModel
): string {
  const { check, dialect, documentName, faults } = model.state;
  switch (check) {
    case 'empty':
      return trans.__('Paste a job document (JSON or YAML), or import a file.');
    case 'unchecked':
      return trans.__('Checking…');
    case 'valid':
      if (model.state.trial?.outcome === 'never') {
        return trans.__('Valid: %1 (%2)', documentName, dialectWord(dialect));
      }
      return trans.__(
        'Ready to submit: %1 (%2)',
        documentName,
        dialectWord(dialect)
      );
    case 'invalid':
      return trans._n('%1 error', '%1 errors', faults.length);
  }
}

/** The bar above the editor as a function of the model's state. */
function Bar(props: IPageProps): JSX.Element {
  const { model, commands, trans, show } = props;
  const { name, documentName, check, submitting } = model.state;
  return (
    <>
      <Halves show={show} trans={trans} />
      <button
        className="jp-mod-styled"
        onClick={() => void commands.execute(CommandIDs.importFile)}
      >
        {trans.__('Import file…')}
      </button>
      <label className="jp-pai-Document-name">
        <span>{trans.__('Job name')}</span>
        <InputGroup
          onChange={event => model.rename(event.target.value)}
          placeholder={documentName || trans.__('as in the document')}
          value={name}
        />
      </label>
      <button
        className="jp-mod-styled jp-mod-accept"
        disabled={submitting || check === 'empty' || check === 'invalid'}
        onClick={() => void commands.execute(CommandIDs.submit)}
      >
        {submitting ? trans.__('Submitting…') : trans.__('Submit')}
      </button>
    </>
  );
}

/** What stands below the editor as a function of the model's state. */
export function Verdict(props: IPageProps): JSX.Element {
  const { model, form, language, trans } = props;
  const { check, problem, warnings, filename, trial } = model.state;
  return (
    <>
      <p className="jp-pai-Document-line" data-check={check} role="status">
        {verdictLine(trans, model)}
        {filename && <span>{filename}</span>}
      </p>
      {trial && <TrialNote {...{ trans, language, trial, form }} />}
      {problem && <ProblemBox trans={trans} problem={problem} />}
      <Faults {...props} />
      <WarningBoxes trans={trans} warnings={warnings} />
    </>
  );
}

/** The buttons that choose them. */
function Halves(props: {
  trans: TranslationBundle;
  show: (shown: Shown) => void;
}): JSX.Element {
  const { trans, show } = props;
  const [shown, setShown] = React.useState<Shown>('both');
  const words: Record<Shown, string> = {
    form: trans.__('Form'),
    both: trans.__('Both'),
    text: trans.__('Text')
  };
  return (
    <div
      aria-label={trans.__('What is shown')}
      className="jp-pai-Document-halves"
      role="group"
    >
      {(['form', 'both', 'text'] as const).map(each => (
        <button
          aria-pressed={each === shown}
          key={each}
          onClick={() => {
            setShown(each);
            show(each);
          }}
          type="button"
        >
          {words[each]}
        </button>
      ))}
    </div>
  );
}

/** The piece of `before` that is another in `after`: what an editor changes, so that cursor and history stay. */
export function replacement(
  before: string,
  after: string
): { from: number; to: number; by: string } {
  const shorter = Math.min(before.length, after.length);
  let from = 0;
  while (from < shorter && before[from] === after[from]) {
    from++;
  }
  let same = 0;
  while (
    same < shorter - from &&
    before[before.length - 1 - same] === after[after.length - 1 - same]
  ) {
    same++;
  }
  const by = after.slice(from, after.length - same);
  return { from, to: before.length - same, by };
}

/** Counts pages, so that the names of their inputs differ. */
let pages = 0;

/** The page of one document. It owns the models. */
export class DocumentPage extends Panel {
  constructor(options: DocumentPage.IOptions) {
    super();
    const { model, form, commands, translator } = options;
    const trans = translator.load(DOMAIN);
    this.model = model;
    this._form = form;
    this.addClass('jp-pai-Document');
    this.title.icon = paiIcon;
    this._untitled = trans.__('New job');
    this.title.closable = true;
    this._editor = new CodeEditorWrapper({
      factory: options.editorServices.factoryService.newDocumentEditor,
      model: new CodeEditor.Model({ mimeType: 'application/json' }),
      editorOptions: {
        config: {
          highlightActiveLine: true,
          lineNumbers: true,
          lineWrap: true,
          matchBrackets: true
        },
        extensions: markExtensions(trans.__('Job document'))
      }
    });
    this._editor.addClass('jp-pai-Document-editor');
    const jump = (fault: IFault) => this._jump(fault);
    const show = (shown: Shown) => {
      this.node.dataset.shown = shown;
    };
    const language = translator.languageCode;
    const props = { model, form, language, commands, trans, jump, show };
    const bar = new ModelView(Bar, props);
    bar.addClass('jp-pai-Document-bar');
    const verdict = new ModelView(Verdict, props);
    verdict.addClass('jp-pai-Document-verdict');
    const pane = new ModelView(shown => <FormPane {...shown} />, {
      model: form,
      document: model,
      trans,
      language: translator.languageCode,
      id: `pai${++pages}`,
      context: { images: [], browse: options.browse },
      reveal: (path: Path) => this._reveal(path)
    });
    pane.addClass('jp-pai-Form');
    const halves = new Panel();
    halves.addClass('jp-pai-Document-twin');
    halves.addWidget(pane);
    halves.addWidget(this._editor);
    this.addWidget(bar);
    this.addWidget(halves);
    this.addWidget(verdict);
    show('both');
    model.changed.connect(pane.update, pane);
    this._editor.model.sharedModel.changed.connect(this._edited, this);
    model.changed.connect(this._update, this);
    this._update();
  }

  readonly model: DocumentModel;

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._editor.model.sharedModel.changed.disconnect(this._edited, this);
    this.model.changed.disconnect(this._update, this);
    super.dispose();
    this._form.dispose();
    this.model.dispose();
  }

  protected onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this._editor.editor.focus();
  }

  private _edited(): void {
    this.model.edit(this._editor.model.sharedModel.getSource());
  }

  /** Bring the editor to the model's state; only what differs, so that the cursor stays. */
  private _update(): void {
    const { text, filename, documentName, faults } = this.model.state;
    this.title.label = documentName || filename || this._untitled;
    const { model } = this._editor;
    model.mimeType = mimeTypeOf(text, filename);
    const shown = model.sharedModel.getSource();
    if (shown !== text) {
      const { from, to, by } = replacement(shown, text);
      model.sharedModel.updateSource(from, to, by);
    }
    if (faults !== this._faults) {
      this._faults = faults;
      showFaults(this._editor.editor.host, faults);
    }
  }

  /** Bring the cursor to what stands at a path, and leave the focus where it is. */
  private _reveal(path: Path): void {
    const { text } = this.model.state;
    const range = rangeOf(this._form.state.notation, text, path);
    const { editor } = this._editor;
    const position = range && editor.getPositionAt(range[0]);
    if (position) {
      editor.setCursorPosition(position, { scroll: true });
    }
  }

  private _jump(fault: IFault): void {
    const { editor } = this._editor;
    const position = {
      line: (fault.line ?? 1) - 1,
      column: Math.max(0, (fault.column ?? 1) - 1)
    };
    editor.setCursorPosition(position, { scroll: true });
    editor.focus();
  }

  private readonly _editor: CodeEditorWrapper;
  private _faults: readonly IFault[] = [];
  private readonly _form: FormModel;
  private readonly _untitled: string;
}

/** Options of {@link DocumentPage}. */
export namespace DocumentPage {
  /** What the page is made from. */
  export interface IOptions {
    readonly model: DocumentModel;
    readonly form: FormModel;
    /** Let the user choose a file or folder of the Jupyter server. */
    readonly browse: (() => Promise<string | null>) | null;
    readonly commands: CommandRegistry;
    readonly editorServices: IEditorServices;
    readonly translator: ITranslator;
  }
}
