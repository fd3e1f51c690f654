/**
 * Changes of many jobs at once: one question before, one message behind.
 */

import {
  Dialog,
  InputDialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { asPaiError } from '../problem';
import type { IJobListModel, IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import { problemWords } from '../words';

/** What the command acts on. */
export interface IManyOptions {
  readonly client: IPaiClient;
  readonly model: IJobListModel;
  readonly trans: TranslationBundle;
}

/** Ask before what cannot be undone. */
async function agreed(
  trans: TranslationBundle,
  what: string,
  count: number
): Promise<boolean> {
  const isDelete = what === 'delete';
  const { button } = await showDialog({
    title: isDelete
      ? trans._n('Delete %1 job?', 'Delete %1 jobs?', count)
      : trans._n('Stop %1 job?', 'Stop %1 jobs?', count),
    body: isDelete
      ? trans.__('Their documents, logs and files will be permanently deleted.')
      : trans.__('All their tasks will be stopped.'),
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({
        label: isDelete ? trans.__('Delete') : trans.__('Stop')
      })
    ]
  });
  return button.accept;
}

/** Do it with each job in turn; jobs that refuse are told together. */
async function doEach(
  { trans }: IManyOptions,
  jobs: readonly string[],
  act: (job: string) => Promise<unknown>
): Promise<void> {
  const refusals: string[] = [];
  for (const job of jobs) {
    try {
      await act(job);
    } catch (reason) {
      refusals.push(problemWords(trans, asPaiError(reason)).what);
    }
  }
  if (refusals.length > 0) {
    const said = [...new Set(refusals)].slice(0, 5).join('\n');
    const count = trans.__('%1 of %2 failed:', refusals.length, jobs.length);
    Notification.error(`${count}\n${said}`, { autoClose: false });
  }
}

async function change(
  commands: CommandRegistry,
  options: IManyOptions,
  what: unknown,
  jobs: readonly string[]
): Promise<void> {
  const { client, trans } = options;
  switch (what) {
    case 'stop':
    case 'delete':
      if (await agreed(trans, what, jobs.length)) {
        await doEach(options, jobs, job =>
          what === 'stop' ? client.stop(job) : client.delete(job)
        );
      }
      break;
    case 'restart':
      await doEach(options, jobs, job => client.start(job));
      break;
    case 'clone':
      for (const job of jobs) {
        await commands.execute(CommandIDs.cloneJob, { job });
      }
      break;
    case 'tag': {
      const { value: tag } = await InputDialog.getText({
        title: trans.__('Tag the jobs'),
        label: trans.__('Tag')
      });
      if (tag) {
        await doEach(options, jobs, job => client.tag(job, tag));
      }
    }
  }
}

/** Add the command. */
export function addChangeJobs(
  commands: CommandRegistry,
  options: IManyOptions
): void {
  commands.addCommand(CommandIDs.changeJobs, {
    label: options.trans.__('Change PAI Jobs'),
    describedBy: {
      args: {
        type: 'object',
        required: ['what', 'jobs'],
        properties: {
          what: { enum: ['stop', 'restart', 'clone', 'tag', 'delete'] },
          jobs: {
            type: 'array',
            items: { type: 'string' },
            description: 'Ids, aliases or uids of jobs.'
          }
        }
      }
    },
    execute: async args => {
      const jobs = (args.jobs as readonly string[] | undefined) ?? [];
      await change(commands, options, args.what, jobs);
      await options.model.refresh();
    }
  });
}
