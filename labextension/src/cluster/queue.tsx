/**
 * The waiting jobs of a virtual cluster, and the buttons that move them.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { JobLink } from '../components';
import { CommandIDs } from '../tokens';
import type { IVirtualClusterUse, IWaitingJob } from '../types';
import type { MoveKind } from './moves';
import { MOVES, movesOf } from './moves';
import { DataRow, DataTable } from './table';

/** What the parts of the page need. */
export interface IUseProps {
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
  /** Whether jobs of other users are shown by name. */
  readonly admin: boolean;
}

interface IMoveWords {
  readonly label: string;
  /** What the button does. */
  readonly help: string;
  /** Why it does nothing. */
  readonly reason: string;
}

function moveWords(
  trans: TranslationBundle,
  kind: MoveKind,
  name: string,
  admin: boolean
): IMoveWords {
  const top = admin
    ? trans.__('it is already the first in its queue')
    : trans.__('it is already the first of your jobs in its queue');
  const bottom = admin
    ? trans.__('it is already the last in its queue')
    : trans.__('it is already the last of your jobs in its queue');
  switch (kind) {
    case 'first':
      return {
        label: trans.__('First'),
        help: trans.__('Move %1 to the front', name),
        reason: top
      };
    case 'up':
      return {
        label: trans.__('Up'),
        help: trans.__('Move %1 up', name),
        reason: top
      };
    case 'down':
      return {
        label: trans.__('Down'),
        help: trans.__('Move %1 down', name),
        reason: bottom
      };
  }
}

/** A way for a job to go. One that leads nowhere stays within reach of the keyboard, to say why. */
function MoveButton(
  props: IUseProps & {
    kind: MoveKind;
    job: IWaitingJob;
    rows: readonly IWaitingJob[];
    onPress: () => void;
  }
): JSX.Element {
  const { commands, trans, admin, kind, job, rows } = props;
  const place = movesOf(rows, job)[kind];
  const { label, help, reason } = moveWords(trans, kind, job.name, admin);
  const text = place ? help : trans.__('%1: not possible, %2', help, reason);
  const press = () => {
    if (place) {
      props.onPress();
      void commands.execute(CommandIDs.moveJob, { job: job.id, ...place });
    }
  };
  return (
    <button
      aria-disabled={!place}
      aria-label={text}
      className="jp-mod-styled jp-pai-Cluster-move"
      data-move={`${job.uid} ${kind}`}
      onClick={press}
      title={text}
    >
      {label}
    </button>
  );
}

/** Those who wait and may be seen, as they are served. */
export function QueueTable(
  props: IUseProps & { use: IVirtualClusterUse }
): JSX.Element {
  const { trans, admin, use } = props;
  const table = React.useRef<HTMLTableElement>(null);
  const pressed = React.useRef<string | null>(null);
  // Browsers take the focus from a row that changes its place: give it back.
  React.useEffect(() => {
    if (pressed.current && document.activeElement === document.body) {
      table.current
        ?.querySelector<HTMLElement>(`[data-move="${pressed.current}"]`)
        ?.focus();
    }
  });
  const columns = [
    { label: trans.__('Place') },
    { label: trans.__('Job') },
    ...(admin ? [{ label: trans.__('User') }] : []),
    { label: trans.__('GPUs') },
    { label: trans.__('Move') }
  ];
  const buttons = (job: IWaitingJob) =>
    MOVES.map(kind => (
      <MoveButton
        {...props}
        job={job}
        key={kind}
        kind={kind}
        onPress={() => {
          pressed.current = `${job.uid} ${kind}`;
        }}
        rows={use.queue}
      />
    ));
  return (
    <DataTable
      columns={columns}
      label={trans.__('Waiting in %1', use.name)}
      ref={table}
    >
      {use.queue.map(job => (
        <DataRow
          cells={[
            trans.__('%1 of %2', job.position, job.waiting),
            <JobLink {...props} job={job} key="job" />,
            ...(admin ? [job.username] : []),
            job.gpus,
            buttons(job)
          ]}
          columns={columns}
          header={1}
          key={job.uid}
        />
      ))}
    </DataTable>
  );
}
