/**
 * The form's half of a document's page: the form, or what to begin with.
 */

import * as React from 'react';
import type { DocumentModel } from '../submit/model';
import { Gallery } from './gallery';
import type { IFormProps } from './view';
import { FormView } from './view';

/** What the half needs. */
export interface IPaneProps extends IFormProps {
  readonly document: DocumentModel;
}

/** The half as a function of both models; of the document only whether it is empty. */
export function FormPane(props: IPaneProps): JSX.Element {
  const { document, model } = props;
  const [isEmpty, setEmpty] = React.useState(document.state.check === 'empty');
  React.useEffect(() => {
    const follow = () => setEmpty(document.state.check === 'empty');
    follow();
    document.changed.connect(follow);
    return () => {
      document.changed.disconnect(follow);
    };
  }, [document]);
  React.useEffect(() => {
    if (!isEmpty) {
      void model.look();
    }
  }, [isEmpty]);
  return isEmpty ? <Gallery {...props} /> : <FormView {...props} />;
}
