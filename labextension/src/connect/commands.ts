/**
 * The command that shows how programs reach a job.
 */

import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { JOB_ARGS, jobOf } from '../jobs/commands';
import { ModelView } from '../components';
import type { IJobListModel, IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import { ConnectModel } from './model';
import { Connect } from './view';

/** What the command acts on. */
export interface IConnectOptions {
  readonly client: IPaiClient;
  readonly jobs: IJobListModel;
  readonly trans: TranslationBundle;
}

/** Show the dialog until it is closed. */
async function showConnect(
  commands: CommandRegistry,
  options: IConnectOptions,
  job: string
): Promise<void> {
  const { client, trans } = options;
  const model = new ConnectModel(client, job);
  const body = new ModelView(Connect, { model, commands, trans });
  const dialog = new Dialog({
    title: trans.__('Connect to %1', job),
    body,
    buttons: [Dialog.okButton({ label: trans.__('Close') })]
  });
  dialog.addClass('jp-pai-Connect-dialog');
  void model.load();
  await dialog.launch();
  model.dispose();
}

/** Add the command; without an argument it is about the selected job of the list. */
export function addConnect(
  commands: CommandRegistry,
  options: IConnectOptions
): void {
  const { jobs, trans } = options;
  commands.addCommand(CommandIDs.connect, {
    label: trans.__('Connect to Job…'),
    caption: trans.__('Editors, PyCharm, PuTTY and xshell'),
    describedBy: { args: JOB_ARGS },
    isEnabled: args =>
      args.job !== undefined || jobs.selectedJob?.state === 'RUNNING',
    execute: async args => {
      const job = jobOf(jobs, args);
      if (job !== null) {
        await showConnect(commands, options, job);
      }
    }
  });
  jobs.changed.connect(() => commands.notifyCommandChanged(CommandIDs.connect));
}
