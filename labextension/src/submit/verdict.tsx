/**
 * What the backend says of a document, as it stands below it.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { ProblemBox, WarningBoxes } from '../components';
import type { FormModel } from '../form/model';
import type { IFault } from '../types';
import { inWords } from '../worded';
import { dialectWord } from '../words';
import type { DocumentModel } from './model';
import { TrialNote } from './trial';

/** What is told, and to whom. */
export interface IVerdictProps {
  readonly model: DocumentModel;
  readonly form: FormModel;
  readonly trans: TranslationBundle;
  readonly language: string;
  /** Show the place of a fault. */
  readonly jump: (fault: IFault) => void;
}

/** Where a fault is, in words. */
export function placeOf(trans: TranslationBundle, fault: IFault): string {
  if (fault.line !== null && fault.column !== null) {
    return trans.__('Line %1, column %2', fault.line, fault.column);
  }
  return fault.line !== null
    ? trans.__('Line %1', fault.line)
    : fault.path || trans.__('Document');
}

function Faults(props: IVerdictProps): JSX.Element {
  const { model, trans, jump } = props;
  return (
    <ul className="jp-pai-Faults" aria-label={trans.__('Errors')}>
      {model.state.faults.map((fault, place) => {
        const said = inWords(trans, fault);
        return (
          <li key={`${fault.path}-${place}`}>
            <button
              className="jp-pai-Faults-fault"
              disabled={fault.line === null}
              onClick={() => jump(fault)}
            >
              <strong>{placeOf(trans, fault)}</strong>
              <span>{said.message}</span>
              {said.hint && <em>{said.hint}</em>}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** One line on how the document stands. */
export function verdictLine(
  trans: TranslationBundle,
  model: DocumentModel
): string {
  const { check, dialect, documentName, faults } = model.state;
  switch (check) {
    case 'empty':
      return trans.__(
        'Choose what to begin with, paste a job document (JSON or YAML), or import a file.'
      );
    case 'unchecked':
      return trans.__('Checking…');
    case 'valid':
      if (model.state.trial?.outcome === 'never') {
        return trans.__('Valid: %1 (%2)', documentName, dialectWord(dialect));
      }
      return trans.__(
        'Ready to submit: %1 (%2)',
        documentName,
        dialectWord(dialect)
      );
    case 'invalid':
      return trans._n('%1 error', '%1 errors', faults.length);
  }
}

/** Keeps a node as high as it was until `isTold`: what stands above it would move at the first key and after the last. */
function useKeptHeight(isTold: boolean): React.RefObject<HTMLDivElement> {
  const node = React.useRef<HTMLDivElement>(null);
  React.useLayoutEffect(() => {
    const { current } = node;
    if (isTold && current) {
      current.style.minHeight = '';
      const height = current.offsetHeight;
      current.style.minHeight = `${height}px`;
    }
  });
  return node;
}

/** What stands below the editor as a function of the model's state. */
export function Verdict(props: IVerdictProps): JSX.Element {
  const { model, form, language, trans } = props;
  const { check, problem, warnings, filename, trial, unkept } = model.state;
  const node = useKeptHeight(
    check === 'empty' || check === 'invalid' || trial !== null
  );
  return (
    <div ref={node}>
      <p className="jp-pai-Document-line" data-check={check} role="status">
        {verdictLine(trans, model)}
        {filename && <span>{filename}</span>}
      </p>
      {trial && <TrialNote {...{ trans, language, trial, form }} />}
      {problem && <ProblemBox trans={trans} problem={problem} />}
      {unkept && (
        <p className="jp-pai-Note" data-kind="warning" role="note">
          <strong>{trans.__('Not kept as a draft.')}</strong>
          <span>{unkept.message}</span>
        </p>
      )}
      <Faults {...props} />
      <WarningBoxes trans={trans} warnings={warnings} />
    </div>
  );
}
