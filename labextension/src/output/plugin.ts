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
import type { Widget } from '@lumino/widgets';
import { Panel } from '@lumino/widgets';
import { DOMAIN, IPaiClient, JOB_MIME } from '../tokens';

/** Before widgets of ipywidgets (-10): an output may hold both, and these need a kernel. */
const RANK = -20;

/** What an output shows, once it is loaded. */
interface IView extends Widget {
  /** Show what an output holds. It is called again whenever the output has changed. */
  render(output: IRenderMime.IMimeModel): void | Promise<void>;
}

/** An output that loads its view when it is first shown. */
class LazyRenderer extends Panel implements IRenderMime.IRenderer {
  constructor(private readonly _load: () => Promise<IView>) {
    super();
    this.addClass('jp-pai-Output');
  }

  async renderModel(output: IRenderMime.IMimeModel): Promise<void> {
    this._loading ??= this._load();
    const view = await this._loading;
    if (this.isDisposed) {
      view.dispose();
      return;
    }
    if (view.parent !== this) {
      this.addWidget(view);
    }
    await view.render(output);
  }

  private _loading: Promise<IView> | null = null;
}

/** Draw a media type of ours by a view that is loaded when it is needed. */
export function addOutput(
  rendermime: IRenderMimeRegistry,
  mimeType: string,
  load: () => Promise<IView>
): void {
  rendermime.addFactory(
    {
      // No view of ours renders anything of the output but by the renderer of untrusted HTML.
      safe: true,
      mimeTypes: [mimeType],
      createRenderer: () => new LazyRenderer(load)
    },
    RANK
  );
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
    addOutput(rendermime, JOB_MIME, async () => {
      const { JobOutputView } = await import('./view');
      return new JobOutputView({ client, commands, rendermime, trans });
    });
  }
};
