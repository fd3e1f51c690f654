/**
 * The addresses of a job as text: SSH, and each service with its state.
 */

import type { CommandRegistry } from '@lumino/commands';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { StateMark } from '../components';
import { CommandIDs } from '../tokens';
import type { IJobDetail, IService, JobState } from '../types';
import { isFinal } from '../types';
import { RowButton } from './tasks';
import { WindowedTable } from '../windowed';

interface IAddress {
  readonly name: string;
  readonly text: string;
  readonly state: JobState;
  /** The service that it opens; null for SSH. */
  readonly service: IService | null;
}

function addressesOf(
  trans: TranslationBundle,
  job: IJobDetail
): readonly IAddress[] {
  const many = job.totalTaskNumber > 1;
  const services = job.services.map(service => ({
    name: many
      ? `${service.label} (${service.role}-${service.index})`
      : service.label,
    text: service.url,
    state: service.state,
    service
  }));
  const ssh = {
    name: trans.__('SSH'),
    text: job.sshCommand,
    state: job.state,
    service: null
  };
  return job.sshCommand ? [ssh, ...services] : services;
}

/** The card. Services can be opened before they run: their address then says why it waits. */
export function Addresses(props: {
  trans: TranslationBundle;
  commands: CommandRegistry;
  job: IJobDetail;
}): JSX.Element {
  const { trans, commands, job } = props;
  const addresses = addressesOf(trans, job);
  if (addresses.length === 0) {
    return <></>;
  }
  return (
    <WindowedTable
      columns={[
        { id: 'name', head: trans.__('Address'), width: 140 },
        { id: 'text', head: trans.__('URL or command'), width: 320 },
        { id: 'state', head: trans.__('State'), width: 100 },
        { id: 'actions', head: trans.__('Actions'), width: 130 }
      ]}
      count={addresses.length}
      label={trans.__('Addresses')}
      row={(place, attributes) => {
        const { name, text, state, service } = addresses[place];
        return (
          <tr {...attributes} key={name}>
            <th scope="row" title={name}>
              {name}
            </th>
            <td title={text}>
              <code>{text}</code>
            </td>
            <td>
              <StateMark state={state} trans={trans} />
            </td>
            <td>
              <RowButton
                label={trans.__('Copy the address of %1', name)}
                onClick={() =>
                  void commands.execute(CommandIDs.copySsh, { command: text })
                }
                word={trans.__('Copy')}
              />
              {service && !isFinal(state) && (
                <RowButton
                  label={trans.__('Open %1', name)}
                  onClick={() =>
                    void commands.execute(CommandIDs.openService, {
                      job: job.id,
                      label: service.label,
                      role: service.role,
                      index: service.index
                    })
                  }
                  word={trans.__('Open')}
                />
              )}
            </td>
          </tr>
        );
      }}
      rowHeight={34}
    />
  );
}
