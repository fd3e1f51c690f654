/**
 * A file beside its folder: its text or picture, and what is known of it.
 */

import * as React from 'react';
import { ProblemBox } from '../components';
import { timeText } from '../words';
import type { IPreview } from './preview';
import { endingOf, TEXT_BYTES } from './preview';
import { sizeText } from './sizes';
import type { IFilesProps } from './table';

/** A picture from bytes that the page holds. It is only ever an image: nothing in it runs. */
function Picture(props: { image: Blob; name: string }): JSX.Element {
  const { image, name } = props;
  const [url, set] = React.useState('');
  React.useEffect(() => {
    const made = URL.createObjectURL(image);
    set(made);
    return () => URL.revokeObjectURL(made);
  }, [image]);
  return url ? <img alt={name} src={url} /> : <></>;
}

function Content(props: IFilesProps & { preview: IPreview }): JSX.Element {
  const { trans, preview } = props;
  const { shown, name } = preview;
  switch (shown.kind) {
    case 'loading':
      return <p>{trans.__('Loading…')}</p>;
    case 'failed':
      return <ProblemBox problem={shown.problem} trans={trans} />;
    case 'image':
      return <Picture image={shown.image} name={name} />;
    case 'large':
      return (
        <p>{trans.__('The picture is too large to be shown. Download it.')}</p>
      );
    case 'other':
      return (
        <p>
          {trans.__('A file of this type cannot be shown here. Download it.')}
        </p>
      );
    case 'text':
      return (
        <>
          {shown.isCut && (
            <p role="note">
              {trans.__(
                'The first %1 are shown. Download the file to see all of it.',
                sizeText(TEXT_BYTES)
              )}
            </p>
          )}
          <pre
            aria-label={trans.__('Text of %1', name)}
            role="region"
            tabIndex={0}
          >
            {shown.text}
          </pre>
        </>
      );
  }
}

/** The file that is looked at. */
export function Preview(
  props: IFilesProps & { preview: IPreview }
): JSX.Element {
  const { model, trans, preview } = props;
  const { name, path, size, modified } = preview;
  const facts = [
    sizeText(size),
    endingOf(name) && trans.__('%1 file', endingOf(name).toUpperCase()),
    timeText(modified)
  ];
  return (
    <section aria-label={trans.__('Preview')} className="jp-pai-Files-preview">
      <header>
        <h3>{name}</h3>
        <a
          className="jp-pai-JobLink"
          download={name}
          href={model.address(path)}
        >
          {trans.__('Download')}
        </a>
        <button className="jp-pai-JobLink" onClick={() => model.unlook()}>
          {trans.__('Close')}
        </button>
      </header>
      <p>{facts.filter(Boolean).join(' · ')}</p>
      <Content {...props} preview={preview} />
    </section>
  );
}
