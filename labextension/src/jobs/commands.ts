/**
 * Commands on jobs. Without an argument they act on the selected job of the list.
 */

import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  deleteIcon,
  launchIcon,
  refreshIcon,
  runIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { reportProblem } from '../feedback';
import type { IJobListModel, IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import type { IService } from '../types';
import { isFinal } from '../types';
import { missingWords } from '../words';

type Args = ReadonlyPartialJSONObject;

/** What the commands act on. */
export interface IJobCommandOptions {
  readonly client: IPaiClient;
  readonly model: IJobListModel;
  readonly trans: TranslationBundle;
  /** Show the list. */
  readonly showJobs: () => void;
  /** Put text on the system's clipboard. */
  readonly copy: (text: string) => void;
  /** Open an empty browser tab; null when the browser forbids it. */
  readonly openTab: () => Window | null;
}

/** The schema of arguments that name a job. */
export const JOB_ARGS = {
  type: 'object',
  properties: {
    job: {
      type: 'string',
      description: 'Id, alias or uid of the job; the selected one when absent.'
    }
  }
} as const;

const NO_ARGS = { type: 'object', properties: {} } as const;

/** The job a command is about: its argument, or the selected job's id; null when there is neither. */
export function jobOf(model: IJobListModel, args: Args): string | null {
  return typeof args.job === 'string'
    ? args.job
    : (model.selectedJob?.id ?? null);
}

function addListCommands(
  commands: CommandRegistry,
  options: IJobCommandOptions
): void {
  const { model, trans } = options;
  commands.addCommand(CommandIDs.showJobs, {
    label: trans.__('Show PAI Jobs'),
    describedBy: { args: NO_ARGS },
    execute: () => options.showJobs()
  });
  commands.addCommand(CommandIDs.refresh, {
    label: args => (args.toolbar ? '' : trans.__('Refresh the Job List')),
    caption: trans.__('Refresh the job list'),
    icon: args => (args.toolbar ? refreshIcon : undefined),
    describedBy: { args: NO_ARGS },
    execute: () => model.refresh()
  });
}

/** The service that the arguments name; without any, the first that runs. */
function serviceOf(
  services: readonly IService[],
  args: Args
): IService | undefined {
  return services.find(service =>
    args.label === undefined
      ? service.state === 'RUNNING'
      : service.label === args.label &&
        service.role === (args.role ?? service.role) &&
        service.index === (args.index ?? service.index)
  );
}

/** The service that is meant; for one that no page lists, as of a job that another user shares, the label is enough. */
async function wanted(
  client: IPaiClient,
  job: string,
  args: Args
): Promise<{
  name: string;
  service?: Pick<IService, 'label'> & Partial<IService>;
}> {
  if (args.unlisted === true && typeof args.label === 'string') {
    return { name: job, service: { label: args.label } };
  }
  const { name, services } = await client.job(job);
  return { name, service: serviceOf(services, args) };
}

/** Sign the browser in to a service and lead the tab there. */
async function openService(
  options: IJobCommandOptions,
  args: Args
): Promise<void> {
  const { client, model, trans } = options;
  const job = jobOf(model, args);
  if (job === null) {
    return;
  }
  // Before the first await: browsers allow a new tab only while they handle a click.
  const tab = options.openTab();
  try {
    const { name, service } = await wanted(client, job, args);
    if (!service) {
      tab?.close();
      Notification.warning(trans.__('This job has no running service.'));
      return;
    }
    const { label, role, index } = service;
    const ticket = await client.ticket(job, label, role, index);
    const way = await client.wayTo(ticket);
    if ('missing' in way) {
      tab?.close();
      // Not a notification, which would cut the line to copy off.
      await showDialog({
        title: trans.__('No address of %1 works in this browser', label),
        body: missingWords(trans, name, label, way.missing),
        buttons: [Dialog.okButton({ label: trans.__('Close') })]
      });
      return;
    }
    leadTo(tab, way.address, trans);
  } catch (reason) {
    tab?.close();
    reportProblem(trans, reason);
  }
}

/** Give the tab its address; when the browser forbade the tab, offer the address instead. */
function leadTo(
  tab: Window | null,
  address: string,
  trans: TranslationBundle
): void {
  if (tab) {
    // The service is a user's program: it gets no handle on JupyterLab.
    tab.opener = null;
    tab.location.replace(address);
    return;
  }
  Notification.info(trans.__('The browser blocked the new tab.'), {
    autoClose: false,
    actions: [
      {
        label: trans.__('Open'),
        callback: () => window.open(address, '_blank', 'noopener')
      }
    ]
  });
}

async function copySsh(options: IJobCommandOptions, args: Args): Promise<void> {
  const { client, model, trans } = options;
  const job = jobOf(model, args);
  try {
    const command =
      typeof args.command === 'string'
        ? args.command
        : job && (await client.job(job)).sshCommand;
    if (!command) {
      Notification.warning(trans.__('This job has no SSH address yet.'));
      return;
    }
    options.copy(command);
    Notification.success(trans.__('Copied: %1', command), { autoClose: 3000 });
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

/** Change a job, and show the list as it is then; a refusal is told. */
async function change(
  { model, trans }: IJobCommandOptions,
  act: () => Promise<unknown>
): Promise<void> {
  try {
    await act();
    await model.refresh();
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

async function stopJob(options: IJobCommandOptions, args: Args): Promise<void> {
  const { client, model, trans } = options;
  const job = jobOf(model, args);
  if (job === null) {
    return;
  }
  const answer = await showDialog({
    title: trans.__('Stop the job?'),
    body: trans.__('All tasks of %1 will be stopped.', job),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Keep it running') }),
      Dialog.warnButton({ label: trans.__('Stop') })
    ]
  });
  if (!answer.button.accept) {
    return;
  }
  await change(options, () => client.stop(job));
}

async function restartJob(
  options: IJobCommandOptions,
  args: Args
): Promise<void> {
  const { client, model } = options;
  const job = jobOf(model, args);
  if (job === null) {
    return;
  }
  await change(options, () => client.start(job));
}

async function deleteJob(
  options: IJobCommandOptions,
  args: Args
): Promise<void> {
  const { client, model, trans } = options;
  const job = jobOf(model, args);
  if (job === null) {
    return;
  }
  const answer = await showDialog({
    title: trans.__('Delete the job?'),
    body: trans.__(
      'The document, history, logs and files of %1 will be permanently deleted. Outputs in storages are kept.',
      job
    ),
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({ label: trans.__('Delete') })
    ]
  });
  if (!answer.button.accept) {
    return;
  }
  await change(options, () => client.delete(job));
}

async function releaseJob(
  options: IJobCommandOptions,
  args: Args
): Promise<void> {
  const { client, model, trans } = options;
  const job = jobOf(model, args);
  if (job === null) {
    return;
  }
  const task = typeof args.task === 'string' ? args.task : undefined;
  try {
    const { tasks } = await client.release(job, task);
    const said =
      tasks.length > 0
        ? trans.__('Released: %1', tasks.join(', '))
        : trans.__('No task of this job is kept.');
    Notification.info(said, { autoClose: 3000 });
    await model.refresh();
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

function addAccessCommands(
  commands: CommandRegistry,
  options: IJobCommandOptions
): void {
  const { model, trans } = options;
  const running = (args: Args) =>
    args.job !== undefined || model.selectedJob?.state === 'RUNNING';
  commands.addCommand(CommandIDs.openService, {
    label: trans.__('Open Service'),
    caption: trans.__('Open a service of the job in a new browser tab'),
    icon: launchIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          ...JOB_ARGS.properties,
          label: { type: 'string', description: 'Name of the port.' },
          role: { type: 'string', description: 'Name of the task role.' },
          index: { type: 'number', description: 'Index of the task.' },
          unlisted: {
            type: 'boolean',
            description: 'Open the label though no page of yours lists it.'
          }
        }
      }
    },
    isEnabled: running,
    execute: args => openService(options, args)
  });
  commands.addCommand(CommandIDs.copySsh, {
    label: trans.__('Copy SSH Command'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          ...JOB_ARGS.properties,
          command: { type: 'string', description: 'Copied as it is.' }
        }
      }
    },
    isEnabled: args => args.command !== undefined || running(args),
    execute: args => copySsh(options, args)
  });
}

/** Add all commands on jobs. */
export function addJobCommands(
  commands: CommandRegistry,
  options: IJobCommandOptions
): void {
  const { model, trans } = options;
  addListCommands(commands, options);
  addAccessCommands(commands, options);
  commands.addCommand(CommandIDs.stopJob, {
    label: trans.__('Stop Job…'),
    icon: stopIcon,
    describedBy: { args: JOB_ARGS },
    isEnabled: args =>
      args.job !== undefined ||
      (model.selectedJob !== null && !isFinal(model.selectedJob.state)),
    execute: args => stopJob(options, args)
  });
  const ended = (args: Args) =>
    args.job !== undefined ||
    (model.selectedJob !== null && isFinal(model.selectedJob.state));
  commands.addCommand(CommandIDs.restartJob, {
    label: trans.__('Restart Job'),
    caption: trans.__('Run the job again under its name'),
    icon: runIcon,
    describedBy: { args: JOB_ARGS },
    isEnabled: ended,
    execute: args => restartJob(options, args)
  });
  commands.addCommand(CommandIDs.deleteJob, {
    label: trans.__('Delete Job…'),
    icon: deleteIcon,
    describedBy: { args: JOB_ARGS },
    isEnabled: ended,
    execute: args => deleteJob(options, args)
  });
  commands.addCommand(CommandIDs.releaseJob, {
    label: trans.__('Release Kept Tasks'),
    caption: trans.__('Release failed tasks that are kept for debugging'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          ...JOB_ARGS.properties,
          task: {
            type: 'string',
            description: 'Name of the task; all that are kept when absent.'
          }
        }
      }
    },
    isEnabled: args =>
      args.job !== undefined ||
      model.selectedJob?.phase === 'kept for debugging',
    execute: args => releaseJob(options, args)
  });
  model.changed.connect(() => {
    commands.notifyCommandChanged(CommandIDs.openService);
    commands.notifyCommandChanged(CommandIDs.copySsh);
    commands.notifyCommandChanged(CommandIDs.stopJob);
    commands.notifyCommandChanged(CommandIDs.restartJob);
    commands.notifyCommandChanged(CommandIDs.deleteJob);
    commands.notifyCommandChanged(CommandIDs.releaseJob);
  });
}
