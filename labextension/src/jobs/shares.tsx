/**
 * Shares in the list: what others may enter, and what the user may enter of theirs.
 */

import { Time } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import type { IShares } from '../tokens';
import { CommandIDs } from '../tokens';
import type { IShare } from '../types';

/** Whose job a share is about: `job` is `user~name`. */
export function ownerOf(share: IShare): string {
  return share.job.split('~', 1)[0];
}

/** Until when the user may enter. */
export function untilWords(
  trans: TranslationBundle,
  until: string | null
): string {
  return until === null
    ? trans.__('until the job ends')
    : trans.__('until %1', Time.format(until));
}

/** What the user may do there; the words are those of `pai share --only`. */
export function allowedWords(
  trans: TranslationBundle,
  only: readonly string[]
): string {
  return only.length === 0
    ? trans.__('everything is allowed')
    : trans.__('allowed: %1', only.join(', '));
}

/** The mark of a job that others may enter; nothing for another one. */
export function SharedMark(props: {
  trans: TranslationBundle;
  shares: IShares;
  uid: string;
}): JSX.Element | null {
  const { trans } = props;
  const given = props.shares.given.filter(share => share.uid === props.uid);
  if (given.length === 0) {
    return null;
  }
  const terms = given.map(share =>
    [
      share.user,
      untilWords(trans, share.expiresAt),
      allowedWords(trans, share.only)
    ].join(' · ')
  );
  const users = given.map(share => share.user).join(', ');
  return (
    <span className="jp-pai-JobList-shared" title={terms.join('\n')}>
      {trans.__('shared with %1', users)}
    </span>
  );
}

/** Jobs of others that the user may enter; nothing when there is none. */
export function ReceivedShares(props: {
  trans: TranslationBundle;
  commands: CommandRegistry;
  shares: IShares;
}): JSX.Element | null {
  const { trans, commands } = props;
  const { received } = props.shares;
  if (received.length === 0) {
    return null;
  }
  return (
    <section
      aria-label={trans.__('Shared with you')}
      className="jp-pai-JobList-received"
    >
      <h3>{trans.__('Shared with you')}</h3>
      <ul>
        {received.map(share => (
          <li data-job={share.job} key={share.uid}>
            <span className="jp-pai-JobList-name">{share.job}</span>
            <button
              className="jp-mod-styled"
              onClick={() =>
                void commands.execute(CommandIDs.connect, { job: share.alias })
              }
            >
              {trans.__('Connect…')}
            </button>
            {share.services.map(label => (
              <button
                aria-label={trans.__('Open %1 of %2', label, share.job)}
                className="jp-mod-styled"
                key={label}
                onClick={() =>
                  void commands.execute(CommandIDs.openService, {
                    job: share.uid,
                    label,
                    unlisted: true
                  })
                }
              >
                {label}
              </button>
            ))}
            <span className="jp-pai-JobList-facts">
              {[
                trans.__('by %1', ownerOf(share)),
                untilWords(trans, share.expiresAt),
                allowedWords(trans, share.only)
              ].join(' · ')}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
