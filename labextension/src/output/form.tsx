/**
 * The form of a job in the output of a cell: what `pai.form()` shows.
 */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { IRenderMime } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';
import { Panel } from '@lumino/widgets';
import * as React from 'react';
import { JobLink, ModelView } from '../components';
import type { FormModel } from '../form/model';
import type { DocumentModel, Outcome } from '../submit/model';
import type { Shown } from '../submit/twin';
import { DocumentTwin } from '../submit/twin';
import { Verdict } from '../submit/verdict';
import { DOMAIN, FORM_MIME } from '../tokens';
import type { IFault, IJobDetail } from '../types';
import type { ITold } from './kernel_link';
import { KernelLink } from './kernel_link';

/** What a notebook holds of a form: its name in the kernel, and the document with its secrets masked. */
interface IFormOutput extends ITold {
  readonly form: string;
}

/** What the bar shows beside its buttons. */
interface IBarProps {
  readonly model: { readonly changed: ISignal<unknown, void> };
  readonly view: FormOutputView;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** The buttons of the form, the job that it has become, and whether Python follows. */
function Bar(props: IBarProps): JSX.Element {
  const { view, commands, trans } = props;
  const { check, submitting } = view.document.state;
  const isEmpty = check === 'empty';
  return (
    <>
      <button
        className="jp-mod-styled"
        disabled={isEmpty}
        onClick={() => void view.document.validate()}
        type="button"
      >
        {trans.__('Validate')}
      </button>
      <button
        aria-pressed={view.shown === 'both'}
        className="jp-mod-styled"
        disabled={isEmpty}
        onClick={() => view.reveal(view.shown === 'both' ? 'form' : 'both')}
        type="button"
      >
        {trans.__('Show document')}
      </button>
      <button
        className="jp-mod-styled jp-mod-accept"
        disabled={submitting || isEmpty || check === 'invalid'}
        onClick={() => void view.submit()}
        type="button"
      >
        {submitting ? trans.__('Submitting…') : trans.__('Submit')}
      </button>
      {view.job && (
        <span role="status">
          {trans.__('Submitted:')}{' '}
          <JobLink commands={commands} job={view.job} />
        </span>
      )}
      {!view.isConnected && (
        <span className="jp-pai-Form-help" role="note">
          {trans.__(
            'Not connected to Python. Run the cell again to have the document there.'
          )}
        </span>
      )}
    </>
  );
}

/** The session of the notebook or console around a widget. */
function sessionAround(widget: Widget): ISessionContext | null {
  for (let around = widget.parent; around; around = around.parent) {
    if ('sessionContext' in around) {
      return around.sessionContext as ISessionContext;
    }
  }
  return null;
}

/** The output of one cell. It owns its models. */
export class FormOutputView extends Panel {
  constructor(private readonly _options: FormOutputView.IOptions) {
    super();
    const { document, form, translator, commands } = _options;
    const trans = translator.load(DOMAIN);
    this.document = document;
    this.addClass('jp-pai-Document');
    this.addClass('jp-pai-FormOutput');
    // Keys in the form are the form's, not the notebook's.
    this.node.dataset.lmSuppressShortcuts = 'true';
    this._twin = new DocumentTwin({ ..._options, model: document });
    const bar = new ModelView(Bar, {
      model: { changed: this._changed },
      view: this,
      commands,
      trans
    });
    bar.addClass('jp-pai-Document-bar');
    const verdict = new ModelView(Verdict, {
      model: document,
      form,
      trans,
      language: translator.languageCode,
      jump: (fault: IFault) => {
        this.reveal('both');
        this._twin.jump(fault);
      }
    });
    verdict.addClass('jp-pai-Document-verdict');
    this.addWidget(bar);
    this.addWidget(this._twin);
    this.addWidget(verdict);
    this.reveal('form');
    document.changed.connect(this._tell, this);
  }

  readonly document: DocumentModel;

  /** The job that the form has become; null before. */
  get job(): IJobDetail | null {
    return this._job;
  }

  /** Which halves are shown. */
  get shown(): Shown {
    return this._shown;
  }

  /** Whether Python has the document as it is here. */
  get isConnected(): boolean {
    return this._link?.isConnected ?? false;
  }

  /** Show these halves. */
  reveal(shown: Shown): void {
    this._shown = shown;
    this.node.dataset.shown = shown;
    this._changed.emit();
  }

  /** Take what an output holds. Called again whenever the output has changed, which follows this view. */
  render(output: IRenderMime.IMimeModel): void {
    const held = output.data[FORM_MIME] as unknown as IFormOutput;
    if (held.form !== this._form) {
      this._form = held.form;
      this._take(held);
      this._connect();
    }
  }

  /** Submit the document, and tell Python which job it has become. */
  async submit(): Promise<void> {
    const outcome = await this._options.submit(this.document);
    if (outcome.kind === 'submitted' && !this.isDisposed) {
      this._job = outcome.job;
      this._link?.tell({ submitted: outcome.job.uid });
      this._changed.emit();
    }
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.document.changed.disconnect(this._tell, this);
    this._link?.dispose();
    super.dispose();
    this._options.form.dispose();
    this.document.dispose();
    Signal.clearData(this);
  }

  protected onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._connect();
  }

  /** Find the form in its kernel; only there is what it holds, secrets included. */
  private _connect(): void {
    const session = sessionAround(this);
    if (!session || !this._form || this._linked === this._form) {
      return;
    }
    this._link?.dispose();
    this._linked = this._form;
    this._link = new KernelLink(session, this._form, told => this._take(told));
    this._link.changed.connect(() => this._changed.emit());
  }

  private _take({ text, filename }: ITold): void {
    this._told = text;
    if (text !== this.document.source) {
      this.document.load(text, filename);
    }
  }

  private _tell(): void {
    this._changed.emit();
    const text = this.document.source;
    if (text !== this._told) {
      this._told = text;
      this._link?.tell({ text, filename: this.document.state.filename });
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  /** The form of Python that is drawn. */
  private _form = '';
  private _job: IJobDetail | null = null;
  private _link: KernelLink | null = null;
  private _linked = '';
  private _shown: Shown = 'form';
  /** The text that Python has, or will have. */
  private _told = '';
  private readonly _twin: DocumentTwin;
}

/** Options of {@link FormOutputView}. */
export namespace FormOutputView {
  /** What an output is made from. */
  export interface IOptions extends Omit<DocumentTwin.IOptions, 'model'> {
    readonly document: DocumentModel;
    readonly form: FormModel;
    readonly commands: CommandRegistry;
    /** Submit a document. */
    readonly submit: (document: DocumentModel) => Promise<Outcome>;
  }
}
