/**
 * The commands that show the cluster, move waiting jobs and end orphans.
 */

import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { reported, reportProblem } from '../feedback';
import { clusterIcon } from '../icons';
import { JOB_ARGS } from '../jobs/commands';
import type { IPaiClient, QueuePlace } from '../tokens';
import { CommandIDs } from '../tokens';
import type { ClusterModel } from './model';
import { removeReservation, reserve } from './reserving';
import { showRules } from './rules';

/** What the commands act on. */
export interface IClusterCommandOptions {
  readonly client: IPaiClient;
  readonly model: ClusterModel;
  readonly trans: TranslationBundle;
  /** Show the page. */
  readonly show: () => Promise<void>;
}

/** The place that the arguments name; first in the queue without any. */
function placeOf(args: ReadonlyPartialJSONObject): QueuePlace {
  if (typeof args.before === 'string') {
    return { before: args.before };
  }
  return typeof args.after === 'string'
    ? { after: args.after }
    : { to: 'first' };
}

async function moveJob(
  options: IClusterCommandOptions,
  args: ReadonlyPartialJSONObject
): Promise<void> {
  const { client, model, trans } = options;
  const { job } = args;
  if (typeof job !== 'string') {
    return;
  }
  try {
    await client.move(job, placeOf(args));
    await model.refresh();
    const row = model.waiting(job);
    if (row) {
      Notification.success(
        trans.__(
          '%1 is number %2 of %3 now.',
          row.name,
          row.position,
          row.waiting
        ),
        { autoClose: 3000 }
      );
    }
  } catch (reason) {
    reportProblem(trans, reason);
    await model.refresh();
  }
}

async function endOrphan(
  options: IClusterCommandOptions,
  args: ReadonlyPartialJSONObject
): Promise<void> {
  const { client, model, trans } = options;
  const { task } = args;
  if (typeof task !== 'string') {
    return;
  }
  const answer = await showDialog({
    title: trans.__('End the task?'),
    body: trans.__(
      '%1 will be ended. This cannot be undone. No job in the database owns it.',
      task
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Keep it running') }),
      Dialog.warnButton({ label: trans.__('End') })
    ]
  });
  if (!answer.button.accept) {
    return;
  }
  try {
    await client.endOrphan(task);
  } catch (reason) {
    reportProblem(trans, reason);
  }
  await model.refresh();
}

/** The GPU types that a virtual cluster has cells of, as far as that is known. */
function typesOf(model: ClusterModel, vc: string): readonly string[] {
  const use = model.state.use?.virtualClusters.find(({ name }) => name === vc);
  const types = use?.cells.map(({ leafType }) => leafType) ?? [];
  return [...new Set(types)].filter(type => type !== '').sort();
}

function addReservationCommands(
  commands: CommandRegistry,
  options: IClusterCommandOptions
): void {
  const { client, model, trans } = options;
  commands.addCommand(CommandIDs.reserve, {
    label: trans.__('Reserve GPUs…'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          vc: { type: 'string', description: 'Name of the virtual cluster.' }
        },
        required: ['vc']
      }
    },
    isEnabled: args => typeof args.vc === 'string',
    execute: async args => {
      if (typeof args.vc === 'string') {
        const types = typesOf(model, args.vc);
        await reported(trans, reserve(client, trans, args.vc, types));
        await model.refresh();
      }
    }
  });
  commands.addCommand(CommandIDs.removeReservation, {
    label: trans.__('Remove Reservation…'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          id: { type: 'string', description: 'Id of the reservation.' },
          name: { type: 'string', description: 'What it is for.' }
        },
        required: ['id']
      }
    },
    isEnabled: args => typeof args.id === 'string',
    execute: async args => {
      if (typeof args.id === 'string') {
        const name = typeof args.name === 'string' ? args.name : args.id;
        await reported(trans, removeReservation(client, trans, args.id, name));
        await model.refresh();
      }
    }
  });
}

/** Add the commands. */
export function addClusterCommands(
  commands: CommandRegistry,
  options: IClusterCommandOptions
): void {
  const { trans } = options;
  addReservationCommands(commands, options);
  commands.addCommand(CommandIDs.showCluster, {
    label: args => (args.toolbar ? '' : trans.__('Show the PAI Cluster')),
    caption: trans.__('Show who uses the cluster, and who waits'),
    icon: args => (args.toolbar ? clusterIcon : undefined),
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => options.show()
  });
  commands.addCommand(CommandIDs.moveJob, {
    label: trans.__('Move Waiting Job'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          job: { ...JOB_ARGS.properties.job, description: 'Id of the job.' },
          before: {
            type: 'string',
            description: 'Id of the job to precede.'
          },
          after: { type: 'string', description: 'Id of the job to follow.' }
        },
        required: ['job']
      }
    },
    isEnabled: args => typeof args.job === 'string',
    execute: args => moveJob(options, args)
  });
  commands.addCommand(CommandIDs.vcRules, {
    label: trans.__('Rules of a Virtual Cluster…'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          vc: { type: 'string', description: 'Name of the virtual cluster.' }
        },
        required: ['vc']
      }
    },
    isEnabled: args => typeof args.vc === 'string',
    execute: async args => {
      if (typeof args.vc === 'string') {
        await reported(trans, showRules(options.client, trans, args.vc));
      }
    }
  });
  commands.addCommand(CommandIDs.endOrphan, {
    label: trans.__('End Unknown Task…'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          task: { type: 'string', description: 'Uid of the task.' }
        },
        required: ['task']
      }
    },
    isEnabled: args => typeof args.task === 'string',
    execute: args => endOrphan(options, args)
  });
}
