/**
 * The command that makes a job for a kernel, and what is said while it waits.
 */

import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { reportProblem } from '../feedback';
import { paiIcon } from '../icons';
import type { IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import type { IJobDetail } from '../types';
import { worded } from '../worded';
import type { IKernelJob } from './form';
import { documentOf, KernelForm } from './form';

/** How often a job that waits is looked at, in milliseconds. */
const LOOK = 2000;

/** What the command acts on. */
export interface IKernelCommandOptions {
  readonly client: IPaiClient;
  readonly trans: TranslationBundle;
  /** Let Jupyter list the kernels of running jobs. */
  readonly refresh: () => Promise<void>;
  /** A name for a new job. */
  readonly newName: () => string;
  /** Resolves when it is time to look again. */
  readonly rest?: () => Promise<void>;
}

const rest = (): Promise<void> =>
  new Promise(resolve => setTimeout(resolve, LOOK));

async function asked(
  options: IKernelCommandOptions
): Promise<IKernelJob | null> {
  const { client, trans } = options;
  const answer = await showDialog({
    title: trans.__('New GPU kernel'),
    body: new KernelForm(await client.use(), trans),
    buttons: [
      Dialog.cancelButton(),
      Dialog.okButton({ label: trans.__('Start') })
    ]
  });
  return answer.button.accept ? answer.value : null;
}

/** The job when it runs; null when it has ended before. Says meanwhile what it waits for. */
async function running(
  options: IKernelCommandOptions,
  begun: IJobDetail
): Promise<IJobDetail | null> {
  const { client, trans } = options;
  const notice = Notification.emit(
    trans.__('The kernel waits for job %1.', begun.name),
    'in-progress',
    {
      autoClose: false,
      actions: [
        {
          label: trans.__('Stop the job'),
          callback: () => {
            client.stop(begun.uid).catch(reason => {
              reportProblem(trans, reason);
            });
          }
        }
      ]
    }
  );
  try {
    let job = begun;
    while (['WAITING', 'STOPPING'].includes(job.state)) {
      Notification.update({
        id: notice,
        message: trans.__(
          'The kernel waits for job %1. %2',
          job.name,
          worded(trans, job.why, job.whyWording)
        )
      });
      await (options.rest ?? rest)();
      job = await client.job(begun.uid);
    }
    return job.state === 'RUNNING' ? job : null;
  } finally {
    Notification.dismiss(notice);
  }
}

async function newKernel(
  commands: CommandRegistry,
  options: IKernelCommandOptions
): Promise<void> {
  const { client, trans } = options;
  try {
    const wanted = await asked(options);
    if (wanted === null) {
      return;
    }
    const text = documentOf(wanted, options.newName());
    const begun = await client.submit({ text, filename: 'kernel.json' });
    await client.markForKernel(begun.uid);
    const job = await running(options, begun);
    if (job === null) {
      Notification.warning(
        trans.__('Job %1 ended before its kernel began.', begun.name)
      );
      return;
    }
    await options.refresh();
    await commands.execute('notebook:create-new', {
      kernelName: `pai:${job.alias}`
    });
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

/** Add the command. */
export function addKernelCommands(
  commands: CommandRegistry,
  options: IKernelCommandOptions
): void {
  const { trans } = options;
  commands.addCommand(CommandIDs.newKernel, {
    label: trans.__('New GPU kernel…'),
    caption: trans.__('Start a job and a notebook that computes in it'),
    icon: args => (args.launcher ? paiIcon : undefined),
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => newKernel(commands, options)
  });
}
