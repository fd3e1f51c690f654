/**
 * The table of groups: who is in each, and what it lets its members use.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { DataRow, DataTable } from '../cluster/table';
import { CommandIDs } from '../tokens';
import type { IUserGroup } from '../types';
import { ADMINS, EVERYONE } from './group_form';
import type { IPageProps } from './view';

/** Members that are named; of more the number says enough. */
const NAMED = 5;

/** Who is in a group. */
export function membersText(
  trans: TranslationBundle,
  { groupname, members }: IUserGroup
): string {
  if (groupname === EVERYONE) {
    return trans.__('all users');
  }
  if (groupname === ADMINS) {
    return trans.__('all administrators');
  }
  if (members.length === 0) {
    return trans.__('none');
  }
  const named = members.slice(0, NAMED).join(', ');
  const more = members.length > NAMED ? ', …' : '';
  return trans.__('%1: %2', members.length, named + more);
}

function Buttons(props: IPageProps & { group: IUserGroup }): JSX.Element {
  const { model, commands, trans, group } = props;
  const { groupname } = group;
  const isAdmin = model.state.me?.admin ?? false;
  const { everything } = group.extension.acls;
  const button = (id: string, label: string, about: string) => (
    <button
      aria-label={about}
      className="jp-mod-styled"
      onClick={() => void commands.execute(id, { group: groupname })}
    >
      {label}
    </button>
  );
  return (
    <div className="jp-pai-Cluster-buttons">
      {(isAdmin || !everything) &&
        button(
          CommandIDs.editGroup,
          trans.__('Edit…'),
          trans.__('Edit the group %1', groupname)
        )}
      {isAdmin &&
        groupname !== EVERYONE &&
        button(
          CommandIDs.removeGroup,
          trans.__('Remove…'),
          trans.__('Remove the group %1', groupname)
        )}
    </div>
  );
}

/** The groups, and for administrators the button that adds one. */
export function GroupsTable(props: IPageProps): JSX.Element {
  const { model, commands, trans } = props;
  const { me, groups } = model.state;
  const columns = [
    { label: trans.__('Group') },
    { label: trans.__('Description') },
    { label: trans.__('Members') },
    { label: trans.__('Virtual clusters') },
    { label: trans.__('Manages') },
    { label: trans.__('Change') }
  ];
  return (
    <section aria-label={trans.__('Groups')}>
      <div className="jp-pai-People-bar">
        <h3>{trans.__('Groups')}</h3>
        {me?.admin && (
          <button
            className="jp-mod-styled"
            onClick={() => void commands.execute(CommandIDs.addGroup)}
          >
            {trans.__('Add Group…')}
          </button>
        )}
      </div>
      <DataTable columns={columns} label={trans.__('Groups')}>
        {groups.map(group => {
          const { acls } = group.extension;
          return (
            <DataRow
              cells={[
                group.groupname,
                group.description,
                membersText(trans, group),
                acls.everything
                  ? trans.__('all')
                  : acls.virtualClusters.join(', '),
                acls.manages.join(', '),
                group.groupname !== ADMINS && (
                  <Buttons {...props} group={group} key="buttons" />
                )
              ]}
              columns={columns}
              header={0}
              key={group.groupname}
            />
          );
        })}
      </DataTable>
    </section>
  );
}
