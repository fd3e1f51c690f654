/**
 * Reservations of GPUs of a virtual cluster: all who may use it see them, who may make them has buttons.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { CommandIDs } from '../tokens';
import type { IReservation, IReservationList } from '../types';
import { DataRow, DataTable } from './table';

interface IReservationsProps {
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
  readonly vc: string;
  readonly reservations: IReservationList;
}

function gpusText(trans: TranslationBundle, each: IReservation): string {
  const number = each.gpuType ? `${each.gpus} ${each.gpuType}` : each.gpus;
  return each.oneNode ? trans.__('%1 in one node', number) : String(number);
}

function usersText(trans: TranslationBundle, each: IReservation): string {
  const groups = each.groups.map(name => trans.__('group %1', name));
  return [...each.users, ...groups].join(', ') || trans.__('all');
}

function RemoveButton(props: {
  commands: CommandRegistry;
  trans: TranslationBundle;
  reservation: IReservation;
}): JSX.Element {
  const { commands, trans, reservation } = props;
  const { id, name } = reservation;
  return (
    <button
      aria-label={trans.__('Remove the reservation %1', name)}
      className="jp-mod-styled"
      onClick={() =>
        void commands.execute(CommandIDs.removeReservation, { id, name })
      }
    >
      {trans.__('Remove…')}
    </button>
  );
}

/** Those of a virtual cluster that are not over, the earliest first. */
export function ReservationsPart(props: IReservationsProps): JSX.Element {
  const { commands, trans, vc, reservations } = props;
  const now = Date.now();
  const ahead = reservations.data.filter(
    each => each.virtualCluster === vc && Date.parse(each.ends) > now
  );
  const mayReserve = reservations.mayReserve.includes(vc);
  if (ahead.length === 0 && !mayReserve) {
    return <></>;
  }
  const columns = [
    { label: trans.__('Reserved for') },
    { label: trans.__('GPUs') },
    { label: trans.__('From') },
    { label: trans.__('To') },
    { label: trans.__('Users') },
    ...(mayReserve ? [{ label: trans.__('Actions') }] : [])
  ];
  const cells = (each: IReservation) => [
    each.name,
    gpusText(trans, each),
    Date.parse(each.begins) <= now
      ? trans.__('now')
      : new Date(each.begins).toLocaleString(),
    new Date(each.ends).toLocaleString(),
    usersText(trans, each),
    ...(mayReserve
      ? [<RemoveButton {...props} key="remove" reservation={each} />]
      : [])
  ];
  return (
    <>
      <h4>{trans.__('Reservations')}</h4>
      {ahead.length === 0 ? (
        <p>{trans.__('Nothing is reserved.')}</p>
      ) : (
        <DataTable columns={columns} label={trans.__('Reservations of %1', vc)}>
          {ahead.map(each => (
            <DataRow
              cells={cells(each)}
              columns={columns}
              header={0}
              key={each.id}
            />
          ))}
        </DataTable>
      )}
      {mayReserve && (
        <button
          aria-label={trans.__('Reserve GPUs of %1', vc)}
          className="jp-mod-styled"
          onClick={() => void commands.execute(CommandIDs.reserve, { vc })}
        >
          {trans.__('Reserve…')}
        </button>
      )}
    </>
  );
}
