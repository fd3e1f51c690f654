/**
 * The command that opens a job's page.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { JOB_ARGS, jobOf } from '../jobs/commands';
import type { IJobListModel } from '../tokens';
import { CommandIDs } from '../tokens';
import type { DetailTab } from './model';

const TABS: DetailTab[] = [
  'overview',
  'notebook',
  'metrics',
  'history',
  'logs',
  'document',
  'why'
];

/** What the command acts on. */
export interface IOpenJobOptions {
  readonly jobs: IJobListModel;
  readonly trans: TranslationBundle;
  /** Show the page of a job, given by its id, and one of its parts. */
  readonly open: (job: string, tab?: DetailTab) => Promise<void>;
}

/** Add the command; without an argument it opens the selected job of the list. */
export function addOpenJob(
  commands: CommandRegistry,
  options: IOpenJobOptions
): void {
  const { jobs, trans } = options;
  commands.addCommand(CommandIDs.openJob, {
    label: trans.__('Show Job Details'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          ...JOB_ARGS.properties,
          tab: { enum: TABS, description: 'The part of the page to show.' }
        }
      }
    },
    isEnabled: args => jobOf(jobs, args) !== null,
    execute: async args => {
      const job = jobOf(jobs, args);
      if (job !== null) {
        await options.open(
          job,
          TABS.find(tab => tab === args.tab)
        );
      }
    }
  });
  jobs.changed.connect(() => commands.notifyCommandChanged(CommandIDs.openJob));
}
