/**
 * The bar above a document: which halves are shown, what becomes of it, and what the job is called.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { InputGroup } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { CommandIDs } from '../tokens';
import type { DocumentModel } from './model';
import type { Shown } from './twin';

/** What the bar acts on. */
export interface IBarProps {
  readonly model: DocumentModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
  readonly show: (shown: Shown) => void;
}

/** The bar above the editor as a function of the model's state. */
export function Bar(props: IBarProps): JSX.Element {
  const { model, commands, trans, show } = props;
  const { name, documentName, check, submitting } = model.state;
  const sweep = async () => {
    const sent = await model.withFolder();
    if (sent) {
      const args = { document: sent.text, secretsOf: sent.secretsOf };
      await commands.execute(CommandIDs.submitSweep, args);
    }
  };
  return (
    <>
      <Halves show={show} trans={trans} />
      <button
        className="jp-mod-styled"
        onClick={() => void commands.execute(CommandIDs.importFile)}
      >
        {trans.__('Import file…')}
      </button>
      <button
        className="jp-mod-styled"
        disabled={check === 'empty'}
        onClick={() => void commands.execute(CommandIDs.saveDocument)}
      >
        {trans.__('Save…')}
      </button>
      <button
        className="jp-mod-styled"
        disabled={check === 'empty'}
        onClick={() => void commands.execute(CommandIDs.saveTemplate)}
      >
        {trans.__('Save as template…')}
      </button>
      <label className="jp-pai-Document-name">
        <span>{trans.__('Job name')}</span>
        <InputGroup
          onChange={event => model.rename(event.target.value)}
          placeholder={documentName || trans.__('as in the document')}
          value={name}
        />
      </label>
      <button
        className="jp-mod-styled jp-mod-accept"
        disabled={submitting || check === 'empty' || check === 'invalid'}
        onClick={() => void commands.execute(CommandIDs.submit)}
      >
        {submitting ? trans.__('Submitting…') : trans.__('Submit')}
      </button>
      <button
        className="jp-mod-styled"
        disabled={submitting || check !== 'valid'}
        onClick={() => void sweep()}
        title={trans.__('Submit a job for each combination of values')}
      >
        {trans.__('Sweep…')}
      </button>
    </>
  );
}

/** The buttons that choose them. */
function Halves(props: {
  trans: TranslationBundle;
  show: (shown: Shown) => void;
}): JSX.Element {
  const { trans, show } = props;
  const [shown, setShown] = React.useState<Shown>('both');
  const words: Record<Shown, string> = {
    form: trans.__('Form'),
    both: trans.__('Both'),
    text: trans.__('Text')
  };
  return (
    <div
      aria-label={trans.__('What is shown')}
      className="jp-pai-Document-halves"
      role="group"
    >
      {(['form', 'both', 'text'] as const).map(each => (
        <button
          aria-pressed={each === shown}
          key={each}
          onClick={() => {
            setShown(each);
            show(each);
          }}
          type="button"
        >
          {words[each]}
        </button>
      ))}
    </div>
  );
}
