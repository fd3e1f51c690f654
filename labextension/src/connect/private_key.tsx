/**
 * The private key of a job, for its owner: saved as a file in the format that a program reads.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { saveText } from '../saving';
import type { KeyFormat } from '../tokens';
import type { ConnectModel } from './model';

/** A type for which no browser adds an ending to the name of a file. */
const BYTES = 'application/octet-stream';

/** Formats that programs on Linux and macOS read, which refuse a file that others may read. */
const NEEDS_MODE: readonly KeyFormat[] = ['openssh', 'pem'];

/** The part of the dialog; nothing for a user to whom the backend gives no key of the job. */
export function PrivateKey(props: {
  readonly model: ConnectModel;
  readonly trans: TranslationBundle;
}): JSX.Element | null {
  const { model, trans } = props;
  const [format, setFormat] = React.useState<KeyFormat>('openssh');
  if (!model.state.hasKey) {
    return null;
  }
  const formats: [KeyFormat, string][] = [
    ['openssh', 'OpenSSH'],
    ['pem', trans.__('PEM (RSA), for xshell and old programs')],
    ['ppk', trans.__('PuTTY 0.75 and newer')],
    ['ppk2', trans.__('Older PuTTY, WinSCP, FileZilla')]
  ];
  const save = async () => {
    const file = await model.takeKey(format);
    if (file) {
      saveText(file.name, file.text, BYTES);
    }
  };
  return (
    <section aria-label={trans.__('Private key of this job')}>
      <h3>{trans.__('Private key of this job')}</h3>
      <p>
        {trans.__(
          'It lets SSH programs into this job, and into no other, until the job ends.'
        )}{' '}
        {NEEDS_MODE.includes(format) &&
          trans.__(
            'On Linux and macOS, run chmod 600 on the file before its first use.'
          )}
      </p>
      <p className="jp-pai-Connect-command">
        <select
          aria-label={trans.__('Format of the key')}
          onChange={event => setFormat(event.target.value as KeyFormat)}
          value={format}
        >
          {formats.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
        <button
          className="jp-mod-styled"
          disabled={model.state.takingKey}
          onClick={() => void save()}
        >
          {trans.__('Download')}
        </button>
      </p>
    </section>
  );
}
