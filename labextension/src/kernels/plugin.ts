/**
 * The plugin of kernels in jobs: new ones, the list of them, and why one has ended.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import type { Kernel } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { DisposableDelegate } from '@lumino/disposable';
import { reportProblem } from '../feedback';
import { CommandIDs, DOMAIN, IJobListModel, IPaiClient } from '../tokens';
import { addKernelCommands } from './commands';

/** Behind it: the job, in names of kernel specs. */
const PREFIX = 'pai:';

/** Say why kernels in jobs have ended that are gone now. */
export async function sayEnded(
  client: IPaiClient,
  trans: TranslationBundle,
  gone: readonly Kernel.IModel[]
): Promise<void> {
  const kernels = await client.kernels();
  for (const { id } of gone) {
    const ended = kernels.find(
      each => each.id === id && each.state === 'ended'
    );
    if (ended) {
      Notification.warning(
        trans.__('A kernel in a job has ended. %1', ended.reason),
        { autoClose: false }
      );
    }
  }
}

/** Say why a kernel in a job was ended that its server starts again by itself, where that is known. */
export async function sayRestarted(
  client: IPaiClient,
  trans: TranslationBundle,
  id: string
): Promise<void> {
  const kernels = await client.kernels();
  const found = kernels.find(each => each.id === id);
  if (found?.reason) {
    Notification.warning(
      trans.__('A kernel in a job is started again. %1', found.reason),
      { autoClose: false }
    );
  }
}

/** Starts kernels in jobs, and keeps the launcher's list of them. */
export const kernelsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:kernels',
  description: 'Starts kernels in PAI jobs and says why they have ended.',
  autoStart: true,
  requires: [IPaiClient, IJobListModel],
  optional: [ITranslator, ICommandPalette, ILauncher],
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    jobs: IJobListModel,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const { commands, serviceManager } = app;
    const refresh = async (): Promise<void> => {
      await client.kernels();
      await serviceManager.kernelspecs.refreshSpecs();
    };
    addKernelCommands(commands, {
      client,
      trans,
      refresh,
      newName: () => `kernel-${Date.now().toString(36)}`
    });
    const command = CommandIDs.newKernel;
    palette?.addItem({ command, category: trans.__('PAI') });
    launcher?.add({
      command,
      args: { launcher: true },
      category: trans.__('PAI')
    });
    let known = '';
    jobs.changed.connect(() => {
      const now = jobs.state.jobs
        .filter(job => job.state === 'RUNNING')
        .map(job => job.uid)
        .join();
      if (now !== known) {
        known = now;
        // Jupyter asks by itself, too, once a minute: a failure here only delays the list.
        refresh().catch(() => undefined);
      }
    });
    app.docRegistry.addWidgetExtension('Notebook', {
      createNew: (_, { sessionContext }) => {
        const listen = (): void => {
          const kernel = sessionContext.session?.kernel;
          if (
            kernel?.name.startsWith(PREFIX) &&
            sessionContext.kernelDisplayStatus === 'autorestarting'
          ) {
            sayRestarted(client, trans, kernel.id).catch(reason => {
              reportProblem(trans, reason);
            });
          }
        };
        sessionContext.statusChanged.connect(listen);
        return new DisposableDelegate(() => {
          sessionContext.statusChanged.disconnect(listen);
        });
      }
    });
    let before: readonly Kernel.IModel[] = [];
    serviceManager.kernels.runningChanged.connect((_, models) => {
      const gone = before.filter(
        old =>
          old.name.startsWith(PREFIX) &&
          !models.some(model => model.id === old.id)
      );
      before = [...models];
      if (gone.length > 0) {
        sayEnded(client, trans, gone).catch(reason => {
          reportProblem(trans, reason);
        });
      }
    });
  }
};
