/**
 * With whom a job is shared, and its links: one place to make and to end them.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { allowedWords, untilWords } from '../jobs/shares';
import type { IShare } from '../types';
import type { ConnectModel } from './model';
import { Copied } from './programs';

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;

interface ISharesProps {
  readonly model: ConnectModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** Who may do what. */
function shareWords(trans: TranslationBundle, share: IShare): string {
  return share.isLink
    ? trans.__('Link for reading %1', share.services.join(', '))
    : `${share.user} · ${allowedWords(trans, share.only)}`;
}

/** Shares a service with a user, or makes a link. */
function NewShare(props: ISharesProps): JSX.Element {
  const { model, trans } = props;
  const { labels } = model.state;
  const [label, setLabel] = React.useState(labels[0]);
  const [user, setUser] = React.useState('');
  const [lifetime, setLifetime] = React.useState(DAY_S);
  const lifetimes: [number, string][] = [
    [HOUR_S, trans.__('1 hour')],
    [DAY_S, trans.__('1 day')],
    [7 * DAY_S, trans.__('7 days')],
    [30 * DAY_S, trans.__('30 days')]
  ];
  return (
    <form
      className="jp-pai-Connect-command"
      onSubmit={event => {
        event.preventDefault();
        void model.share(label, user.trim(), lifetime);
      }}
    >
      <select
        aria-label={trans.__('Service to share')}
        onChange={event => setLabel(event.target.value)}
        value={label}
      >
        {labels.map(each => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <input
        aria-label={trans.__('User or group to share with')}
        onChange={event => setUser(event.target.value)}
        placeholder={trans.__('User, group:NAME, or empty for a link')}
        value={user}
      />
      <select
        aria-label={trans.__('For how long')}
        onChange={event => setLifetime(Number(event.target.value))}
        value={lifetime}
      >
        {lifetimes.map(([seconds, words]) => (
          <option key={seconds} value={seconds}>
            {words}
          </option>
        ))}
      </select>
      <button className="jp-mod-styled" type="submit">
        {user.trim() ? trans.__('Share') : trans.__('Make a Link')}
      </button>
    </form>
  );
}

/** The part of the dialog; nothing for a job of another user. */
export function Shares(props: ISharesProps): JSX.Element | null {
  const { model, commands, trans } = props;
  const { shares, labels, link } = model.state;
  if (shares === null) {
    return null;
  }
  return (
    <section aria-label={trans.__('Shares')}>
      <h3>{trans.__('Shares')}</h3>
      <ul className="jp-pai-Connect-verdicts">
        {shares.map(share => (
          <li data-share={share.user} key={share.user}>
            <span>
              {`${shareWords(trans, share)} · ${untilWords(trans, share.expiresAt)}`}
            </span>{' '}
            <button
              aria-label={trans.__('End the share with %1', share.user)}
              className="jp-mod-styled"
              onClick={() => void model.endShare(share.user)}
            >
              {trans.__('End')}
            </button>
          </li>
        ))}
      </ul>
      {link !== null && (
        <p className="jp-pai-Connect-command" role="status">
          {trans.__('The link, shown this once:')}
          <Copied commands={commands} text={link} trans={trans} />
        </p>
      )}
      {labels.length > 0 && <NewShare {...props} />}
    </section>
  );
}
