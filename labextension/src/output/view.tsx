/**
 * A job in the output of a cell: as it is now where the Jupyter server knows it, else as the notebook holds it.
 */

import type { IRenderMime } from '@jupyterlab/rendermime';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { MimeModel } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Widget } from '@lumino/widgets';
import { Panel } from '@lumino/widgets';
import * as React from 'react';
import { ModelView } from '../components';
import { DetailModel } from '../detail/model';
import { JobDetail } from '../detail/overview';
import { LogView } from '../log/view';
import { PaiError } from '../problem';
import type { IPaiClient } from '../tokens';
import { CommandIDs, JOB_MIME } from '../tokens';
import type { IJobOutput } from '../types';
import { isFinal } from '../types';
import { problemWords, timeText } from '../words';

interface IPartProps {
  readonly model: DetailModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** The job with what can be done to it, and the way to its page. */
function LiveJob(props: IPartProps): JSX.Element {
  const { model, commands, trans } = props;
  const { job } = model.state;
  if (!job) {
    return <></>;
  }
  const open = () =>
    void commands.execute(CommandIDs.openJob, { job: job.uid });
  return (
    <>
      <JobDetail {...props} job={job} onWhy={open} />
      <button className="jp-pai-JobLink" onClick={open}>
        {trans.__('Show Job Details')}
      </button>
    </>
  );
}

/** Why the output shows what the notebook holds. */
function StoredNote(props: IPartProps & { seen: string }): JSX.Element {
  const { model, trans, seen } = props;
  const { job, problem } = model.state;
  if (job || !problem) {
    return <></>;
  }
  return (
    <div className="jp-pai-Note" data-kind="warning" role="note">
      <strong>
        {trans.__('This is the job as it was at %1.', timeText(seen))}
      </strong>
      <span>{problemWords(trans, problem).what}</span>
    </div>
  );
}

/** The output of one cell. */
export class JobOutputView extends Panel {
  constructor(private readonly _options: JobOutputView.IOptions) {
    super();
  }

  /** Show what an output holds. It is called again whenever the output has changed. */
  async render(output: IRenderMime.IMimeModel): Promise<void> {
    this._output = output;
    const { uid, seen } = output.data[JOB_MIME] as unknown as IJobOutput;
    if (this._model?.name !== uid) {
      this._follow(uid, seen);
    }
    if (this._stored) {
      await this._showStored(output);
    }
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    super.dispose();
    this._log?.dispose();
    this._model?.dispose();
  }

  /** Ask the Jupyter server for the job; the notebook's own form stays until it answers. */
  private _follow(uid: string, seen: string): void {
    const { client, commands, rendermime, trans } = this._options;
    this._model?.dispose();
    this._log?.dispose();
    while (this.widgets.length > 0) {
      this.widgets[0].dispose();
    }
    const model = (this._model = new DetailModel(client, uid));
    this._isUpToDate = false;
    const props = { model, commands, trans };
    this.addWidget(new ModelView(StoredNote, { ...props, seen }));
    this._stored = new Panel();
    this.addWidget(this._stored);
    const log = (this._log = new LogView(rendermime, trans));
    model.changed.connect(() => {
      const { state } = model;
      if (state.job && this._stored) {
        this._stored.dispose();
        this._stored = null;
        const live = new ModelView(LiveJob, props);
        live.addClass('jp-pai-Detail');
        this.addWidget(live);
        this.addWidget(log);
      }
      if (log.model !== state.log) {
        log.model = state.log;
      }
      log.setHidden(state.log === null);
      void this._keepEnd(model);
    });
    model.showTab('logs');
    model.start();
  }

  private async _showStored(output: IRenderMime.IMimeModel): Promise<void> {
    const html = output.data['text/html'] ?? '';
    const data = new MimeModel({ data: { 'text/html': html }, trusted: false });
    const shown: Widget & IRenderMime.IRenderer =
      this._options.rendermime.createRenderer('text/html');
    await shown.renderModel(data);
    if (!this._stored) {
      shown.dispose();
      return;
    }
    while (this._stored.widgets.length > 0) {
      this._stored.widgets[0].dispose();
    }
    this._stored.addWidget(shown);
  }

  /** Once the job has ended, the notebook says how, whether or not there is a kernel to do so. */
  private async _keepEnd(model: DetailModel): Promise<void> {
    const held = this._output?.data[JOB_MIME] as unknown as IJobOutput;
    const { job } = model.state;
    if (!job || !isFinal(job.state) || held.ended || this._isUpToDate) {
      return;
    }
    this._isUpToDate = true;
    try {
      const bundle = await this._options.client.output(model.name);
      if (this._output && model === this._model && !this.isDisposed) {
        const data = { ...this._output.data, ...bundle };
        this._output.setData({ data });
      }
    } catch (reason) {
      if (!(reason instanceof PaiError)) {
        throw reason;
      }
      // The output shows the job as it is; what the notebook holds is renewed when the job is next read.
      this._isUpToDate = false;
    }
  }

  private _isUpToDate = false;
  private _log: LogView | null = null;
  private _model: DetailModel | null = null;
  private _output: IRenderMime.IMimeModel | null = null;
  private _stored: Panel | null = null;
}

/** Options of {@link JobOutputView}. */
export namespace JobOutputView {
  /** What an output is made from. */
  export interface IOptions {
    readonly client: IPaiClient;
    readonly commands: CommandRegistry;
    readonly rendermime: IRenderMimeRegistry;
    readonly trans: TranslationBundle;
  }
}
