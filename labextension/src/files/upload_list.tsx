/**
 * Uploads with how far each is.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { AwayCode } from '../problem';
import { problemWords } from '../words';
import { sizeText } from './sizes';
import type { IUpload, Uploads } from './uploads';
import { isUnderWay } from './uploads';

interface IUploadsProps {
  readonly uploads: Uploads;
  readonly trans: TranslationBundle;
}

function stageText(trans: TranslationBundle, upload: IUpload): string {
  const { stage, sent, size, problem } = upload;
  switch (stage) {
    case 'waiting':
      return trans.__('Waiting');
    case 'sending':
      return trans.__('%1 of %2', sizeText(sent), sizeText(size));
    case 'done':
      return trans.__('Uploaded');
    case 'cancelled':
      return trans.__('Cancelled');
    case 'failed': {
      const words = problem && problemWords(trans, problem);
      // The panel asks again by itself in other places: here that is the user's to do.
      const isAway = problem?.code === AwayCode.backend;
      return [words?.what, !isAway && words?.remedy].filter(Boolean).join(' ');
    }
  }
}

function Line(props: IUploadsProps & { upload: IUpload }): JSX.Element {
  const { uploads, trans, upload } = props;
  const { id, name, sent, size, stage } = upload;
  return (
    <li data-stage={stage}>
      <strong title={upload.path}>{name}</strong>
      {isUnderWay(upload) && (
        <progress
          aria-label={trans.__('Upload of %1', name)}
          max={Math.max(1, size)}
          value={sent}
        />
      )}
      <span>{stageText(trans, upload)}</span>
      {isUnderWay(upload) && (
        <button
          aria-label={trans.__('Cancel the upload of %1', name)}
          className="jp-pai-JobLink"
          onClick={() => uploads.cancel(id)}
        >
          {trans.__('Cancel')}
        </button>
      )}
      {stage === 'failed' && (
        <button
          aria-label={trans.__('Retry the upload of %1', name)}
          className="jp-pai-JobLink"
          onClick={() => uploads.retry(id)}
        >
          {trans.__('Retry')}
        </button>
      )}
    </li>
  );
}

/** All uploads of the page; empty without any. */
export function UploadList(props: IUploadsProps): JSX.Element {
  const { uploads, trans } = props;
  const { all } = uploads;
  const done = all.filter(each => each.stage === 'done').length;
  const failed = all.filter(each => each.stage === 'failed').length;
  if (all.length === 0) {
    return <></>;
  }
  return (
    <section aria-label={trans.__('Uploads')} className="jp-pai-Files-uploads">
      <header>
        <span role="status">
          {trans.__('%1 of %2 uploaded', done, all.length)}
          {failed > 0 && `, ${trans.__('%1 failed', failed)}`}
        </span>
        {!all.every(isUnderWay) && (
          <button className="jp-pai-JobLink" onClick={() => uploads.clear()}>
            {trans.__('Clear the list')}
          </button>
        )}
      </header>
      <ul>
        {all.map(upload => (
          <Line {...props} key={upload.id} upload={upload} />
        ))}
      </ul>
    </section>
  );
}
