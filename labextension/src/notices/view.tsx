/**
 * The page of notifications: where messages about the user's jobs go, whether they arrive, and the buttons that change
 * that.
 */

import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import { bellIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import { DataRow, DataTable } from '../cluster/table';
import { ModelView, ProblemBox } from '../components';
import { CommandIDs, DOMAIN } from '../tokens';
import type { INotification } from '../types';
import type { NotificationsModel } from './model';
import { channelWord, lastText, newsText, placeText } from './words';

interface IPageProps {
  readonly model: NotificationsModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

function Buttons(
  props: IPageProps & { notification: INotification }
): JSX.Element {
  const { model, commands, trans, notification } = props;
  const { id } = notification;
  const place = placeText(trans, notification);
  const isTested = model.state.tested.has(id);
  const run = (command: string) =>
    void commands.execute(command, { notification: id });
  return (
    <div className="jp-pai-Cluster-buttons">
      <button
        aria-disabled={isTested}
        aria-label={trans.__('Test %1', place)}
        className="jp-mod-styled"
        onClick={() => run(CommandIDs.testNotification)}
      >
        {isTested ? trans.__('Testing…') : trans.__('Test')}
      </button>
      <button
        aria-label={trans.__('Remove %1', place)}
        className="jp-mod-styled"
        onClick={() => run(CommandIDs.removeNotification)}
      >
        {trans.__('Remove…')}
      </button>
    </div>
  );
}

function NotificationsTable(
  props: IPageProps & { notifications: readonly INotification[] }
): JSX.Element {
  const { trans, notifications } = props;
  const columns = [
    { label: trans.__('To') },
    { label: trans.__('Channel') },
    { label: trans.__('News') },
    { label: trans.__('Last message') },
    {
      label: trans.__('Waiting'),
      help: trans.__('What has happened and has not arrived yet'),
      numeric: true
    },
    {
      label: trans.__('Given up'),
      help: trans.__('What has happened and is not sent again'),
      numeric: true
    },
    { label: trans.__('Change') }
  ];
  return (
    <DataTable columns={columns} label={trans.__('Notifications')}>
      {notifications.map(each => (
        <DataRow
          cells={[
            each.place,
            channelWord(trans, each.channel),
            newsText(trans, each),
            lastText(trans, each) || trans.__('none yet'),
            each.waiting,
            each.lost,
            <Buttons {...props} key="buttons" notification={each} />
          ]}
          columns={columns}
          header={0}
          key={each.id}
          troubled={each.trouble !== ''}
        />
      ))}
    </DataTable>
  );
}

/** The page as a function of the model's state. */
export function Notifications(props: IPageProps): JSX.Element {
  const { model, commands, trans } = props;
  const { notifications, problem } = model.state;
  return (
    <>
      <header>
        <h2>{trans.__('PAI Notifications')}</h2>
        <button
          className="jp-mod-styled"
          onClick={() => void commands.execute(CommandIDs.addNotification)}
        >
          {trans.__('Add…')}
        </button>
      </header>
      <p>
        {trans.__(
          'Messages about your jobs by mail, in a chat or to a program, also when no browser is open.'
        )}
      </p>
      {problem && <ProblemBox problem={problem} trans={trans} />}
      {!notifications && !problem && <p>{trans.__('Loading…')}</p>}
      {notifications?.length === 0 && (
        <p>{trans.__('No messages are sent yet.')}</p>
      )}
      {notifications && notifications.length > 0 && (
        <NotificationsTable {...props} notifications={notifications} />
      )}
    </>
  );
}

/** The page. The model outlives it. */
export class NotificationsPage extends ModelView<IPageProps> {
  constructor(options: NotificationsPage.IOptions) {
    const { model, commands, translator } = options;
    const trans = translator.load(DOMAIN);
    super(Notifications, { model, commands, trans });
    this._model = model;
    this.addClass('jp-pai-Cluster');
    this.addClass('jp-pai-Notifications');
    this.title.icon = bellIcon;
    this.title.label = trans.__('PAI Notifications');
    this.title.closable = true;
    // Reached by the keyboard, so that it can be scrolled.
    this.node.tabIndex = 0;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('PAI Notifications'));
  }

  /** Messages may have been sent meanwhile. */
  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    void this._model.refresh();
  }

  private readonly _model: NotificationsModel;
}

/** Options of {@link NotificationsPage}. */
export namespace NotificationsPage {
  /** What the page is made from. */
  export interface IOptions {
    readonly model: NotificationsModel;
    readonly commands: CommandRegistry;
    readonly translator: ITranslator;
  }
}
