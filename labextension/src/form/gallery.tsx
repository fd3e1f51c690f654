/**
 * Documents to begin with: drafts, the user's templates, the site's, and those that are shipped.
 */

import { Time } from '@jupyterlab/coreutils';
import { closeIcon } from '@jupyterlab/ui-components';
import * as React from 'react';
import { ProblemBox } from '../components';
import { inLocale } from '../language';
import type { Kept } from '../tokens';
import { IconButton } from './fields';
import type { IFormProps } from './view';

/** One document to begin with. */
interface IStart {
  readonly kind: Kept;
  readonly name: string;
  readonly filename: string;
  readonly title: string;
  readonly about: string;
  /** Whether the user may delete it. */
  readonly own: boolean;
}

function Start(props: IFormProps & { start: IStart }): JSX.Element {
  const { model, trans, start } = props;
  const { kind, name, filename, title, about, own } = start;
  return (
    <li>
      <button
        className="jp-pai-Form-start"
        onClick={() => void model.begin(kind, name, filename)}
        type="button"
      >
        <strong>{title}</strong>
        {about && <span>{about}</span>}
      </button>
      {own && (
        <div className="jp-pai-Form-discard">
          <IconButton
            icon={closeIcon}
            label={trans.__('Delete %1', title)}
            onClick={() => void model.discard(kind, name)}
          />
        </div>
      )}
    </li>
  );
}

/** The gallery as a function of the form's model. */
export function Gallery(props: IFormProps): JSX.Element {
  const { model, trans, language } = props;
  const { templates, drafts, problem } = model.state;
  React.useEffect(() => void model.offer(), [model]);
  const of = (origin: string): IStart[] =>
    (templates ?? [])
      .filter(each => each.origin === origin)
      .map(each => ({
        kind: 'templates',
        name: each.name,
        filename: each.filename,
        own: origin === 'own',
        ...(inLocale(each.words, language) ?? each.words.en)
      }));
  const groups: [string, IStart[]][] = [
    [
      trans.__('Your drafts'),
      drafts.map(each => ({
        kind: 'drafts',
        name: each.name,
        filename: each.filename,
        title: each.filename || trans.__('New job'),
        about: Time.formatHuman(each.changedAt),
        own: true
      }))
    ],
    [trans.__('Your templates'), of('own')],
    [trans.__('Templates of this site'), of('site')],
    [trans.__('Begin with'), of('shipped')]
  ];
  return (
    <section className="jp-pai-Form-starts">
      {problem && <ProblemBox problem={problem} trans={trans} />}
      {!templates && !problem && (
        <p role="status">
          {trans.__(
            'Asking the backend for templates. A private backend starts when it is first used; that takes some seconds.'
          )}
        </p>
      )}
      {groups
        .filter(([, starts]) => starts.length > 0)
        .map(([title, starts]) => (
          <React.Fragment key={title}>
            <h2>{title}</h2>
            <ul>
              {starts.map(start => (
                <Start key={start.name} {...props} start={start} />
              ))}
            </ul>
          </React.Fragment>
        ))}
    </section>
  );
}
