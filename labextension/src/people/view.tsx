/**
 * The page of users and their groups: who may sign in, what each may do, and the buttons that change that.
 */

import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import { usersIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import { ModelView, ProblemBox } from '../components';
import { CommandIDs, DOMAIN } from '../tokens';
import { GroupsTable } from './groups_table';
import type { PeopleModel } from './model';
import { UsersTable } from './users_table';

/** What the parts of the page need. */
export interface IPageProps {
  readonly model: PeopleModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** The page as a function of the model's state. */
export function People(props: IPageProps): JSX.Element {
  const { model, commands, trans } = props;
  const { me, problem } = model.state;
  const mayChange = me !== null && (me.admin || me.manages.length > 0);
  return (
    <>
      <header>
        <h2>{trans.__('Users')}</h2>
        {me?.admin && (
          <button
            className="jp-mod-styled"
            onClick={() => void commands.execute(CommandIDs.addUser)}
          >
            {trans.__('Add User…')}
          </button>
        )}
      </header>
      {problem && <ProblemBox problem={problem} trans={trans} />}
      {!me && !problem && <p>{trans.__('Loading…')}</p>}
      {me && !mayChange && (
        <p>
          {trans.__(
            'Administrators change users, and managers who may use their virtual clusters. You are neither.'
          )}
        </p>
      )}
      {mayChange && (
        <>
          <UsersTable {...props} />
          <GroupsTable {...props} />
        </>
      )}
    </>
  );
}

/** The page. The model outlives it. */
export class PeoplePage extends ModelView<IPageProps> {
  constructor(options: PeoplePage.IOptions) {
    const { model, commands, translator } = options;
    const trans = translator.load(DOMAIN);
    super(People, { model, commands, trans });
    this._model = model;
    this.addClass('jp-pai-Cluster');
    this.title.icon = usersIcon;
    this.title.label = trans.__('Users');
    this.title.closable = true;
    // Reached by the keyboard, so that it can be scrolled.
    this.node.tabIndex = 0;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Users'));
  }

  /** Others may have changed them meanwhile. */
  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    void this._model.refresh();
  }

  private readonly _model: PeopleModel;
}

/** Options of {@link PeoplePage}. */
export namespace PeoplePage {
  /** What the page is made from. */
  export interface IOptions {
    readonly model: PeopleModel;
    readonly commands: CommandRegistry;
    readonly translator: ITranslator;
  }
}
