/**
 * The commands that show how programs reach a job, and that open VS Code in it.
 */

import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { reportProblem } from '../feedback';
import { JOB_ARGS, jobOf } from '../jobs/commands';
import { ModelView } from '../components';
import type { IJobListModel, IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import { ConnectModel } from './model';
import { Copied } from './programs';
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
  void model.loadShares();
  void model.loadKey();
  await dialog.launch();
  model.dispose();
}

/** Have VS Code run in the job, show the password that it asks for, and open it when the user wants. */
async function openCode(
  commands: CommandRegistry,
  options: IConnectOptions,
  job: string
): Promise<void> {
  const { client, trans } = options;
  const waiting = Notification.info(trans.__('VS Code starts in %1…', job), {
    autoClose: false
  });
  try {
    const { label, password } = await client
      .codeServer(job)
      .finally(() => Notification.dismiss(waiting));
    const { button } = await showDialog({
      title: trans.__('VS Code in %1', job),
      body: (
        <div className="jp-pai-Connect">
          <p>{trans.__('VS Code asks for this password once:')}</p>
          <p className="jp-pai-Connect-command">
            <Copied commands={commands} text={password} trans={trans} />
          </p>
        </div>
      ),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Close') }),
        Dialog.okButton({ label: trans.__('Open') })
      ]
    });
    if (button.accept) {
      await commands.execute(CommandIDs.openService, {
        job,
        label,
        unlisted: true
      });
    }
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

/** Add the commands; without an argument they are about the selected job of the list. */
export function addConnect(
  commands: CommandRegistry,
  options: IConnectOptions
): void {
  const { jobs, trans } = options;
  const add = (
    id: string,
    [label, caption]: [string, string],
    run: typeof openCode
  ) => {
    commands.addCommand(id, {
      label,
      caption,
      describedBy: { args: JOB_ARGS },
      isEnabled: args =>
        args.job !== undefined || jobs.selectedJob?.state === 'RUNNING',
      execute: async args => {
        const job = jobOf(jobs, args);
        if (job !== null) {
          await run(commands, options, job);
        }
      }
    });
    jobs.changed.connect(() => commands.notifyCommandChanged(id));
  };
  add(
    CommandIDs.connect,
    [
      trans.__('Connect to Job…'),
      trans.__('Editors, PyCharm, PuTTY and xshell')
    ],
    showConnect
  );
  add(
    CommandIDs.openCode,
    [
      trans.__('VS Code in the Browser'),
      trans.__('The image of the job must have code-server')
    ],
    openCode
  );
}
