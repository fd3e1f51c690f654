/**
 * The document of a job: as submitted, as the backend understands it, and beside another job's.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { saveText } from '../saving';
import type { DetailModel, IDocuments, IOtherDocument } from './model';
import { diffLines } from './diff';

type Form = 'submitted' | 'resolved' | 'compared';

function Comparison(props: {
  trans: TranslationBundle;
  documents: IDocuments;
  other: IOtherDocument;
}): JSX.Element {
  const { trans, documents, other } = props;
  const lines = React.useMemo(
    () => diffLines(other.text, documents.submitted.text),
    [documents, other]
  );
  if (lines === null) {
    return <p>{trans.__('The documents differ in too many lines.')}</p>;
  }
  if (lines.every(line => line.mark === ' ')) {
    return <p>{trans.__('The documents are the same.')}</p>;
  }
  return (
    <pre
      aria-label={trans.__('Difference to %1', other.name)}
      className="jp-pai-Diff"
      role="region"
      tabIndex={0}
    >
      {lines.map(({ mark, text }, place) => (
        <div data-mark={mark} key={place}>
          {`${mark} ${text}`}
        </div>
      ))}
    </pre>
  );
}

/** Reads the other job's name. */
function Compare(props: {
  trans: TranslationBundle;
  onCompare: (name: string) => void;
}): JSX.Element {
  const { trans, onCompare } = props;
  const [name, setName] = React.useState('');
  return (
    <form
      onSubmit={event => {
        event.preventDefault();
        onCompare(name.trim());
      }}
    >
      <input
        aria-label={trans.__('Name of the job to compare with')}
        className="jp-mod-styled"
        onChange={event => setName(event.target.value)}
        placeholder={trans.__('Another job')}
        value={name}
      />
      <button className="jp-mod-styled" disabled={!name.trim()} type="submit">
        {trans.__('Compare')}
      </button>
    </form>
  );
}

/** The document in the form that was chosen. */
export function DocumentTab(props: {
  trans: TranslationBundle;
  model: DetailModel;
}): JSX.Element {
  const { trans, model } = props;
  const { documents, other, job } = model.state;
  const [form, setForm] = React.useState<Form>('submitted');
  if (!documents || !job) {
    return <p>{trans.__('Loading…')}</p>;
  }
  const { submitted, resolved } = documents;
  const button = (id: Form, label: string) => (
    <button
      aria-pressed={form === id}
      className="jp-mod-styled"
      onClick={() => setForm(id)}
    >
      {label}
    </button>
  );
  const type = submitted.filename.split('.').pop() ?? 'txt';
  const shown = form === 'resolved' ? resolved : submitted.text;
  return (
    <>
      <div className="jp-pai-Detail-actions">
        {button('submitted', trans.__('As submitted'))}
        {button('resolved', trans.__('As understood'))}
        <button
          className="jp-mod-styled"
          onClick={() =>
            saveText(
              `${job.name}.${form === 'resolved' ? 'json' : type}`,
              shown
            )
          }
        >
          {trans.__('Download')}
        </button>
        <Compare
          onCompare={name => {
            void model.compare(name);
            setForm('compared');
          }}
          trans={trans}
        />
      </div>
      {form === 'compared' ? (
        other && (
          <Comparison documents={documents} other={other} trans={trans} />
        )
      ) : shown ? (
        <pre
          aria-label={trans.__('Document')}
          className="jp-pai-DocumentText"
          role="region"
          tabIndex={0}
        >
          {shown}
        </pre>
      ) : (
        <p>{trans.__('This document can no longer be submitted here.')}</p>
      )}
    </>
  );
}
