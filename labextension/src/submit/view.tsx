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
import { markExtensions, showFaults } from './marks';
import type { DocumentModel } from './model';

/** What the parts of the page need. */
interface IPageProps {
  readonly model: DocumentModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
  readonly jump: (fault: IFault) => void;
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

/** The MIME type that colours the text: JSON begins with a bracket or comment, YAML does not. */
export function mimeTypeOf(text: string, filename: string): string {
  if (/\.ya?ml$/i.test(filename)) {
    return 'text/x-yaml';
  }
  return text.trim() === '' || /^\s*([{[]|\/\/|\/\*)/.test(text)
    ? 'application/json'
    : 'text/x-yaml';
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
  const { model, commands, trans } = props;
  const { name, documentName, check, submitting } = model.state;
  return (
    <>
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
  const { model, trans } = props;
  const { check, problem, warnings, filename } = model.state;
  return (
    <>
      <p className="jp-pai-Document-line" data-check={check} role="status">
        {verdictLine(trans, model)}
        {filename && <span>{filename}</span>}
      </p>
      {problem && <ProblemBox trans={trans} problem={problem} />}
      <Faults {...props} />
      <WarningBoxes trans={trans} warnings={warnings} />
    </>
  );
}

/** The page of one document. It owns the model. */
export class DocumentPage extends Panel {
  constructor(options: DocumentPage.IOptions) {
    super();
    const { model, commands, translator } = options;
    const trans = translator.load(DOMAIN);
    this.model = model;
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
    const props = { model, commands, trans, jump };
    const bar = new ModelView(Bar, props);
    bar.addClass('jp-pai-Document-bar');
    const verdict = new ModelView(Verdict, props);
    verdict.addClass('jp-pai-Document-verdict');
    this.addWidget(bar);
    this.addWidget(this._editor);
    this.addWidget(verdict);
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
    if (model.sharedModel.getSource() !== text) {
      model.sharedModel.setSource(text);
    }
    if (faults !== this._faults) {
      this._faults = faults;
      showFaults(this._editor.editor.host, faults);
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
  private readonly _untitled: string;
}

/** Options of {@link DocumentPage}. */
export namespace DocumentPage {
  /** What the page is made from. */
  export interface IOptions {
    readonly model: DocumentModel;
    readonly commands: CommandRegistry;
    readonly editorServices: IEditorServices;
    readonly translator: ITranslator;
  }
}
