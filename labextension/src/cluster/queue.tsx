/**
 * The waiting jobs of a virtual cluster, and the buttons that move them.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { JobLink } from '../parts';
import { CommandIDs } from '../tokens';
import type { IVirtualClusterUse, IWaitingJob } from '../types';
import type { MoveKind } from './moves';
import { MOVES, movesOf } from './moves';

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
    ? trans.__('it is the first of its queue')
    : trans.__('it is the first of your jobs in its queue');
  const bottom = admin
    ? trans.__('it is the last of its queue')
    : trans.__('it is the last of your jobs in its queue');
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

function QueueRow(
  props: IUseProps & {
    job: IWaitingJob;
    rows: readonly IWaitingJob[];
    onPress: (kind: MoveKind) => void;
  }
): JSX.Element {
  const { trans, admin, job } = props;
  return (
    <tr>
      <td>{trans.__('%1 of %2', job.position, job.waiting)}</td>
      <th scope="row">
        <JobLink {...props} />
        {admin && <span> {job.username}</span>}
      </th>
      <td>{job.gpus}</td>
      <td className="jp-pai-Cluster-moves">
        {MOVES.map(kind => (
          <MoveButton
            {...props}
            key={kind}
            kind={kind}
            onPress={() => props.onPress(kind)}
          />
        ))}
      </td>
    </tr>
  );
}

/** Those who wait and may be seen, as they are served. */
export function QueueTable(
  props: IUseProps & { use: IVirtualClusterUse }
): JSX.Element {
  const { trans, use } = props;
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
  return (
    <table aria-label={trans.__('Waiting in %1', use.name)} ref={table}>
      <thead>
        <tr>
          <th scope="col">{trans.__('Place')}</th>
          <th scope="col">{trans.__('Job')}</th>
          <th scope="col">{trans.__('GPUs')}</th>
          <th scope="col">{trans.__('Move')}</th>
        </tr>
      </thead>
      <tbody>
        {use.queue.map(job => (
          <QueueRow
            {...props}
            job={job}
            key={job.uid}
            onPress={kind => {
              pressed.current = `${job.uid} ${kind}`;
            }}
            rows={use.queue}
          />
        ))}
      </tbody>
    </table>
  );
}
