/**
 * A document as a form and as a text, side by side and in step.
 */

import type { IEditorServices } from '@jupyterlab/codeeditor';
import { CodeEditor, CodeEditorWrapper } from '@jupyterlab/codeeditor';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import { Panel } from '@lumino/widgets';
import { ModelView } from '../components';
import type { FormModel } from '../form/model';
import { FormPane } from '../form/pane';
import type { Path } from '../form/paths';
import { recentImages } from '../form/recent';
import { secretRanges } from '../form/secrets';
import { notationOf, rangeOf } from '../form/twin';
import { DOMAIN } from '../tokens';
import type { IFault } from '../types';
import { inWords } from '../worded';
import { markExtensions, maskSecrets, showFaults } from './marks';
import type { DocumentModel } from './model';

/** Which halves are shown. */
export type Shown = 'form' | 'both' | 'text';

/** The MIME type that colours the text. */
export function mimeTypeOf(text: string, filename: string): string {
  return notationOf(text, filename) === 'yaml'
    ? 'text/x-yaml'
    : 'application/json';
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

/** Counts twins, so that the names of their inputs differ. */
let twins = 0;

/** Both halves of a document. It owns neither model. */
export class DocumentTwin extends Panel {
  constructor(options: DocumentTwin.IOptions) {
    super();
    const { model, form, translator } = options;
    const trans = translator.load(DOMAIN);
    this._trans = trans;
    this._model = model;
    this._form = form;
    this.addClass('jp-pai-Document-twin');
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
    const pane = new ModelView(FormPane, {
      model: form,
      document: model,
      trans,
      language: translator.languageCode,
      id: `pai${++twins}`,
      context: {
        images: recentImages(),
        sendFolder: options.sendFolder && (() => options.sendFolder!(model)),
        sentFolder: (codeDir: string) => {
          const { folder } = model.state;
          return folder?.codeDir === codeDir ? folder.path : null;
        },
        browseStorage: options.browseStorage,
        names: (folder: string) => form.names(folder)
      },
      reveal: (path: Path) => this._reveal(path)
    });
    pane.addClass('jp-pai-Form');
    this.addWidget(pane);
    this.addWidget(this._editor);
    form.changed.connect(this._mask, this);
    this._editor.model.sharedModel.changed.connect(this._edited, this);
    model.changed.connect(this._follow, this);
    this._editor.editor.model.selections.changed.connect(this._point, this);
    this._follow();
  }

  /** Bring the keyboard into the text. */
  focus(): void {
    this._editor.editor.focus();
  }

  /** Bring the cursor to a fault. */
  jump(fault: IFault): void {
    const { editor } = this._editor;
    const position = {
      line: (fault.line ?? 1) - 1,
      column: Math.max(0, (fault.column ?? 1) - 1)
    };
    editor.setCursorPosition(position, { scroll: true });
    editor.focus();
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._editor.model.sharedModel.changed.disconnect(this._edited, this);
    this._model.changed.disconnect(this._follow, this);
    this._form.changed.disconnect(this._mask, this);
    super.dispose();
  }

  private _edited(): void {
    this._model.edit(this._editor.model.sharedModel.getSource());
  }

  /** Bring the editor to the model's state; only what differs, so that the cursor stays. */
  private _follow(): void {
    const { text, filename, faults } = this._model.state;
    const { model } = this._editor;
    model.mimeType = mimeTypeOf(text, filename);
    const shown = model.sharedModel.getSource();
    if (shown !== text) {
      const { from, to, by } = replacement(shown, text);
      model.sharedModel.updateSource(from, to, by);
      this._mask();
    }
    if (faults !== this._faults) {
      this._faults = faults;
      showFaults(
        this._editor.editor.host,
        faults.map(fault => inWords(this._trans, fault))
      );
    }
  }

  /** Lead the form to what the cursor stands at, unless it is the form that moves it. */
  private _point(): void {
    const { editor } = this._editor;
    if (editor.hasFocus()) {
      this._form.point(editor.getOffsetAt(editor.getCursorPosition()));
    }
  }

  /** Show the values of secrets as dots, once the text can be read. */
  private _mask(): void {
    const { text, filename } = this._model.state;
    if (text !== this._masked) {
      const ranges = secretRanges(notationOf(text, filename), text);
      if (ranges) {
        this._masked = text;
        maskSecrets(this._editor.editor.host, ranges);
      }
    }
  }

  /** Bring the cursor to what stands at a path, and leave the focus where it is. */
  private _reveal(path: Path): void {
    const { text } = this._model.state;
    const range = rangeOf(this._form.state.notation, text, path);
    const { editor } = this._editor;
    const position = range && editor.getPositionAt(range[0]);
    if (position) {
      editor.setCursorPosition(position, { scroll: true });
    }
  }

  private readonly _editor: CodeEditorWrapper;
  private _faults: readonly IFault[] = [];
  private readonly _trans: TranslationBundle;
  private readonly _form: FormModel;
  /** The text whose secrets are masked. */
  private _masked = '';
  private readonly _model: DocumentModel;
}

/** Options of {@link DocumentTwin}. */
export namespace DocumentTwin {
  /** What both halves are made from. */
  export interface IOptions {
    readonly model: DocumentModel;
    readonly form: FormModel;
    /** Let the user choose a folder of the Jupyter server and send it for a document; null when that was not done. */
    readonly sendFolder:
      ((model: DocumentModel) => Promise<string | null>) | null;
    /** Let the user choose of the backend's storage, from where a path points; null when cancelled. */
    readonly browseStorage: (path: string) => Promise<string | null>;
    readonly editorServices: IEditorServices;
    readonly translator: ITranslator;
  }
}
