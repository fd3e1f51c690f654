/**
 * The plugin that shows jobs in the outputs of notebooks.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { IRenderMime } from '@jupyterlab/rendermime';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Panel } from '@lumino/widgets';
import { DOMAIN, IPaiClient, JOB_MIME } from '../tokens';
import type { JobOutputView } from './view';

/** Before widgets of ipywidgets (-10): an output may hold both, and these need a kernel. */
const RANK = -20;

/** An output that loads its view when it is first shown. */
class JobOutputRenderer extends Panel implements IRenderMime.IRenderer {
  constructor(private readonly _options: JobOutputView.IOptions) {
    super();
    this.addClass('jp-pai-Output');
  }

  async renderModel(output: IRenderMime.IMimeModel): Promise<void> {
    const { JobOutputView } = await import('./view');
    if (this.isDisposed) {
      return;
    }
    if (!this._view) {
      this._view = new JobOutputView(this._options);
      this.addWidget(this._view);
    }
    await this._view.render(output);
  }

  private _view: JobOutputView | null = null;
}

/** Renders a job that a cell submitted or asked for. */
export const outputPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:output',
  description:
    'Shows PAI jobs in the outputs of notebooks, with or without their kernel.',
  autoStart: true,
  requires: [IPaiClient, IRenderMimeRegistry],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const { commands } = app;
    rendermime.addFactory(
      {
        // It renders nothing of the output but by the renderer of untrusted HTML.
        safe: true,
        mimeTypes: [JOB_MIME],
        createRenderer: () =>
          new JobOutputRenderer({ client, commands, rendermime, trans })
      },
      RANK
    );
  }
};
