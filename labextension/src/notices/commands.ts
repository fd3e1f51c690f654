/**
 * The commands that show, add, test and remove notifications.
 */

import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { bellIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { reportProblem } from '../feedback';
import { FormDialog } from '../form_dialog';
import type { IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import type { INotification } from '../types';
import { NotificationForm } from './form';
import type { NotificationsModel } from './model';
import { placeText } from './words';

/** How long a test message may take until it was tried: between two messages are 10 s. In milliseconds. */
const PATIENCE_MS = 40_000;

/** Between two looks whether it was; in milliseconds. */
const LOOK_MS = 500;

/** What the commands act on. */
export interface INotificationOptions {
  readonly client: IPaiClient;
  readonly model: NotificationsModel;
  readonly trans: TranslationBundle;
  /** Show the page. */
  readonly show: () => Promise<void>;
  /** Resolves after so many milliseconds; by default that long. */
  readonly rest?: (ms: number) => Promise<void>;
}

type Act = (
  options: INotificationOptions,
  notification: INotification
) => Promise<void>;

function rest(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}

async function addNotification(options: INotificationOptions): Promise<void> {
  const { client, model, trans } = options;
  const isAdded = await FormDialog.ask({
    trans,
    title: trans.__('Add a notification'),
    form: new NotificationForm(trans),
    label: trans.__('Add'),
    change: typed => client.addNotification(typed)
  });
  if (isAdded) {
    await model.refresh();
  }
}

/** The notification when a message was tried after `triedAt`; null when that takes too long. Rejects with PaiError. */
async function tried(
  options: INotificationOptions,
  { id, triedAt }: INotification
): Promise<INotification | null> {
  const { model } = options;
  for (let waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
    await model.refresh();
    if (model.state.problem) {
      throw model.state.problem;
    }
    const now = model.notification(id);
    if (now === null || now.triedAt !== triedAt) {
      return now;
    }
    await (options.rest ?? rest)(LOOK_MS);
  }
  return null;
}

/** What is to be said of a test. */
function outcome(
  { trans }: INotificationOptions,
  place: string,
  now: INotification | null
): Omit<Notification.IUpdate<null>, 'id'> {
  if (now === null) {
    return {
      type: 'warning',
      message: trans.__(
        'The test message for %1 has not been sent yet. The page of notifications says when it was.',
        place
      ),
      autoClose: false
    };
  }
  return now.trouble
    ? {
        type: 'error',
        message: trans.__(
          'The test message did not arrive at %1: %2',
          place,
          now.trouble
        ),
        autoClose: false
      }
    : {
        type: 'success',
        message: trans.__('The test message has arrived at %1.', place),
        autoClose: 5000
      };
}

const testNotification: Act = async (options, { id }) => {
  const { client, model, trans } = options;
  // What was tried before the test is not to be taken for it.
  await model.refresh();
  const before = model.notification(id);
  if (before === null || model.state.tested.has(id)) {
    return;
  }
  const place = placeText(trans, before);
  const said = Notification.emit(
    trans.__('A test message is on its way to %1.', place),
    'in-progress',
    { autoClose: false }
  );
  model.setTested(id, true);
  try {
    await client.testNotification(id);
    const now = await tried(options, before);
    Notification.update({ id: said, ...outcome(options, place, now) });
  } catch (reason) {
    Notification.dismiss(said);
    throw reason;
  } finally {
    model.setTested(id, false);
  }
};

const removeNotification: Act = async ({ client, model, trans }, removed) => {
  const { button } = await showDialog({
    title: trans.__('Remove %1?', placeText(trans, removed)),
    body: trans.__(
      'No further messages are sent there, also those that wait now. Its URL and secret are deleted.'
    ),
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({ label: trans.__('Remove') })
    ]
  });
  if (button.accept) {
    await client.removeNotification(removed.id);
    await model.refresh();
  }
};

/** Add the commands. */
export function addNotificationCommands(
  commands: CommandRegistry,
  options: INotificationOptions
): void {
  const { model, trans } = options;
  const none = { args: { type: 'object', properties: {} } } as const;
  commands.addCommand(CommandIDs.showNotifications, {
    label: trans.__('Show PAI Notifications'),
    caption: trans.__('Where messages about your jobs go'),
    icon: bellIcon,
    describedBy: none,
    execute: () => options.show()
  });
  commands.addCommand(CommandIDs.addNotification, {
    label: trans.__('Add a PAI Notification…'),
    describedBy: none,
    execute: () => addNotification(options)
  });
  const add = (id: string, label: string, act: Act) =>
    commands.addCommand(id, {
      label,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            notification: {
              type: 'string',
              description: 'Id of the notification.'
            }
          },
          required: ['notification']
        }
      },
      isEnabled: args => named(model, args) !== null,
      execute: async args => {
        const notification = named(model, args);
        try {
          await (notification && act(options, notification));
        } catch (reason) {
          reportProblem(trans, reason);
          await model.refresh();
        }
      }
    });
  add(
    CommandIDs.testNotification,
    trans.__('Test a Notification'),
    testNotification
  );
  add(
    CommandIDs.removeNotification,
    trans.__('Remove a Notification…'),
    removeNotification
  );
}

function named(
  model: NotificationsModel,
  { notification }: ReadonlyPartialJSONObject
): INotification | null {
  return model.notification(notification);
}
