/**
 * Running tasks that the backend's database does not know: shown to administrators, who may end them.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { CommandIDs } from '../tokens';
import type { IOrphan } from '../types';
import { DataRow, DataTable } from './table';

function stateText(trans: TranslationBundle, orphan: IOrphan): string {
  if (!orphan.endedBy) {
    return orphan.state;
  }
  return orphan.endedBy === 'age'
    ? trans.__('%1, end requested: kept for too long', orphan.state)
    : trans.__('%1, end requested by %2', orphan.state, orphan.endedBy);
}

function EndButton(props: {
  commands: CommandRegistry;
  trans: TranslationBundle;
  orphan: IOrphan;
}): JSX.Element {
  const { commands, trans, orphan } = props;
  const { task } = orphan;
  return (
    <button
      aria-label={trans.__('End %1', task)}
      className="jp-mod-styled"
      disabled={orphan.endedBy !== ''}
      onClick={() => void commands.execute(CommandIDs.endOrphan, { task })}
    >
      {trans.__('End…')}
    </button>
  );
}

/** All of them, the longest known first; nothing where every running task has its job. */
export function OrphansSection(props: {
  commands: CommandRegistry;
  trans: TranslationBundle;
  orphans: readonly IOrphan[];
}): JSX.Element {
  const { trans, orphans } = props;
  if (orphans.length === 0) {
    return <></>;
  }
  const columns = [
    { label: trans.__('Task') },
    { label: trans.__('State') },
    { label: trans.__('Seen first') },
    { label: trans.__('Why it was not taken back') },
    { label: trans.__('End') }
  ];
  return (
    <section aria-labelledby="jp-pai-cluster-orphans">
      <h3 id="jp-pai-cluster-orphans">{trans.__('Orphans')}</h3>
      <p>
        {trans.__(
          'These tasks are running, but the database has no record of them. They are kept. The scheduler does not count what they use.'
        )}
      </p>
      <DataTable columns={columns} label={trans.__('Orphans')}>
        {orphans.map(orphan => (
          <DataRow
            cells={[
              orphan.task,
              stateText(trans, orphan),
              new Date(orphan.seenAt).toLocaleString(),
              orphan.why,
              <EndButton {...props} key="end" orphan={orphan} />
            ]}
            columns={columns}
            header={0}
            key={orphan.task}
            troubled
          />
        ))}
      </DataTable>
    </section>
  );
}
