/**
 * The form's half of a document's page: the form, or what to begin with.
 */

import * as React from 'react';
import type { DocumentModel } from '../submit/model';
import type { IStart } from './starts';
import { starts } from './starts';
import type { IFormProps } from './view';
import { FormView } from './view';

/** What the half needs. */
export interface IPaneProps extends IFormProps {
  readonly document: DocumentModel;
}

/** Documents to begin with. */
function Starts(props: IPaneProps): JSX.Element {
  const { document, trans } = props;
  const begin = (start: IStart) => document.load(start.text, start.filename);
  return (
    <section className="jp-pai-Form-starts">
      <h2>{trans.__('Begin with')}</h2>
      <ul>
        {starts(trans).map(start => (
          <li key={start.filename}>
            <button onClick={() => begin(start)} type="button">
              <strong>{start.title}</strong>
              <span>{start.about}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The half as a function of both models. */
export function FormPane(props: IPaneProps): JSX.Element {
  const { document, model } = props;
  const isEmpty = document.state.check === 'empty';
  React.useEffect(() => {
    if (!isEmpty) {
      void model.look();
    }
  }, [isEmpty]);
  return isEmpty ? <Starts {...props} /> : <FormView {...props} />;
}
