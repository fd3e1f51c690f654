/**
 * The submission page: a document as form and text, and what the backend says about it.
 */

import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import { Panel } from '@lumino/widgets';
import { ModelView } from '../components';
import type { FormModel } from '../form/model';
import { paiIcon } from '../icons';
import { DOMAIN } from '../tokens';
import type { IFault } from '../types';
import { Bar } from './bar';
import type { DocumentModel } from './model';
import type { Shown } from './twin';
import { DocumentTwin } from './twin';
import { Verdict } from './verdict';

/** The page of one document. It owns the models. */
export class DocumentPage extends Panel {
  constructor(options: DocumentPage.IOptions) {
    super();
    const { model, form, commands, translator } = options;
    const trans = translator.load(DOMAIN);
    const language = translator.languageCode;
    this.model = model;
    this._form = form;
    this._take = options.take;
    this._untitled = trans.__('New job');
    this.addClass('jp-pai-Document');
    this.title.icon = paiIcon;
    this.title.closable = true;
    this._twin = new DocumentTwin(options);
    const jump = (fault: IFault) => this._twin.jump(fault);
    const show = (shown: Shown) => {
      this.node.dataset.shown = shown;
    };
    const bar = new ModelView(Bar, { model, commands, trans, show });
    bar.addClass('jp-pai-Document-bar');
    const verdict = new ModelView(Verdict, {
      model,
      form,
      trans,
      language,
      jump
    });
    verdict.addClass('jp-pai-Document-verdict');
    this.addWidget(bar);
    this.addWidget(this._twin);
    this.addWidget(verdict);
    show('both');
    model.changed.connect(this._update, this);
    for (const event of ['dragover', 'drop', 'paste'] as const) {
      this.node.addEventListener(event, this._takeFile, true);
    }
    this._update();
  }

  readonly model: DocumentModel;

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.model.changed.disconnect(this._update, this);
    super.dispose();
    this._form.dispose();
    this.model.dispose();
  }

  protected onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this._twin.focus();
  }

  /** Open a file that is dropped or pasted; the editor would insert its text as it can. */
  private readonly _takeFile = (event: DragEvent | ClipboardEvent): void => {
    const data =
      'dataTransfer' in event ? event.dataTransfer : event.clipboardData;
    if (!data?.types.includes('Files')) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const file = data.files[0];
    if (event.type !== 'dragover' && file) {
      void this._take(file);
    }
  };

  /** Bring the page's tab to the model's state. */
  private _update(): void {
    const { filename, documentName, dirty } = this.model.state;
    this.title.className = dirty ? 'jp-mod-dirty' : '';
    this.title.label = documentName || filename || this._untitled;
  }

  private readonly _form: FormModel;
  private readonly _take: (file: File) => Promise<void>;
  private readonly _twin: DocumentTwin;
  private readonly _untitled: string;
}

/** Options of {@link DocumentPage}. */
export namespace DocumentPage {
  /** What the page is made from. */
  export interface IOptions extends DocumentTwin.IOptions {
    /** Open a file of this computer. */
    readonly take: (file: File) => Promise<void>;
    readonly commands: CommandRegistry;
  }
}
