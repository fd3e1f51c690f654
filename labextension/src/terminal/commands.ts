/**
 * The commands that open and end terminals in tasks.
 */

import { InputDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { isKept } from '../detail/tasks';
import { tasksOf } from '../detail/model';
import { reportProblem } from '../feedback';
import { paiIcon } from '../icons';
import { JOB_ARGS, jobOf } from '../jobs/commands';
import type { IJobListModel, IPaiClient, ITerminalPlace } from '../tokens';
import { CommandIDs } from '../tokens';

type Args = ReadonlyPartialJSONObject;

/** What the commands act on. */
export interface ITerminalCommandOptions {
  readonly client: IPaiClient;
  readonly jobs: IJobListModel;
  readonly trans: TranslationBundle;
  /** Show a terminal; with `start` there may be no shell yet. */
  readonly show: (place: ITerminalPlace, start: boolean) => Promise<void>;
}

const TERMINAL_ARGS = {
  type: 'object',
  properties: {
    ...JOB_ARGS.properties,
    role: { type: 'string', description: 'Role of the task.' },
    index: { type: 'number', description: 'Index of the task in its role.' },
    name: { type: 'string', description: 'Which of the terminals there.' },
    isNew: { type: 'boolean', description: 'Always begin a new shell.' }
  }
} as const;

/** Which job is meant: the argument, else the selected one if it runs, else one that the user chooses. */
async function chosenJob(
  options: ITerminalCommandOptions,
  args: Args
): Promise<string | null> {
  const { jobs, trans } = options;
  if (args.job !== undefined || jobs.selectedJob?.state === 'RUNNING') {
    return jobOf(jobs, args);
  }
  const running = jobs.state.jobs.filter(job => job.state === 'RUNNING');
  if (running.length < 2) {
    return running[0]?.id ?? null;
  }
  const chosen = await InputDialog.getItem({
    title: trans.__('Open a terminal in which job?'),
    items: running.map(job => job.id)
  });
  return chosen.button.accept ? chosen.value : null;
}

/** The first task that can be entered; null when there is none. */
async function firstTask(
  client: IPaiClient,
  job: string
): Promise<{ role: string; index: number } | null> {
  const tasks = tasksOf(await client.job(job));
  return tasks.find(task => task.state === 'RUNNING' || isKept(task)) ?? null;
}

/** A shell that no window shows, or a name that none has. */
async function freeName(
  client: IPaiClient,
  task: Omit<ITerminalPlace, 'name'>,
  isNew: boolean
): Promise<string> {
  const known = await client.terminals(task);
  const left = known.find(each => each.clients === 0 && each.ended === null);
  if (left && !isNew) {
    return left.name;
  }
  const names = new Set(known.map(each => each.name));
  let number = 1;
  while (names.has(String(number))) {
    number += 1;
  }
  return String(number);
}

async function openTerminal(
  options: ITerminalCommandOptions,
  args: Args
): Promise<void> {
  const { client, trans, show } = options;
  const job = await chosenJob(options, args);
  if (job === null) {
    throw new Error(trans.__('No job is running.'));
  }
  const task =
    typeof args.role === 'string'
      ? { role: args.role, index: Number(args.index ?? 0) }
      : await firstTask(client, job);
  if (task === null) {
    throw new Error(trans.__('No task of %1 can be entered.', job));
  }
  const { role, index } = task;
  if (typeof args.name === 'string') {
    await show({ job, role, index, name: args.name }, false);
    return;
  }
  const place = { job, role, index };
  const name = await freeName(client, place, args.isNew === true);
  await show({ ...place, name }, true);
}

/** Add the command; without arguments it is about the first task of the selected job. */
export function addTerminals(
  commands: CommandRegistry,
  options: ITerminalCommandOptions
): void {
  const { trans } = options;
  commands.addCommand(CommandIDs.openTerminal, {
    label: args =>
      args.isLauncher === true
        ? trans.__('Terminal in a Job')
        : trans.__('Open Terminal in Job'),
    caption: trans.__('A shell that goes on when the connection is lost'),
    icon: args => (args.isLauncher === true ? paiIcon : undefined),
    describedBy: { args: TERMINAL_ARGS },
    execute: async args => {
      try {
        await openTerminal(options, args);
      } catch (reason) {
        reportProblem(trans, reason);
      }
    }
  });
}
