/**
 * Pieces that more than one view shows. Pure functions of their properties.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ISignal } from '@lumino/signaling';
import * as React from 'react';
import type { PaiError } from './problem';
import { CommandIDs } from './tokens';
import type { IDocumentWarning, JobState } from './types';
import { inWords } from './worded';
import { problemWords, stateWord } from './words';

/** A state as a coloured mark and a word; `failed`: a success in which tasks failed is not shown as one. */
export function StateMark(props: {
  trans: TranslationBundle;
  state: JobState;
  failed?: boolean;
}): JSX.Element {
  const { trans, state } = props;
  const failed = props.failed === true && state === 'SUCCEEDED';
  return (
    <span
      className="jp-pai-StateMark"
      data-failed={failed || undefined}
      data-state={state}
    >
      {failed ? trans.__('Ended with failures') : stateWord(trans, state)}
    </span>
  );
}

/** Why something is out of date or did not happen, and what to do. */
export function ProblemBox(props: {
  trans: TranslationBundle;
  problem: PaiError;
}): JSX.Element {
  const { what, remedy } = problemWords(props.trans, props.problem);
  return (
    <div className="jp-pai-Note" data-kind="problem" role="alert">
      <strong>{what}</strong>
      {remedy && <span>{remedy}</span>}
    </div>
  );
}

/** Warnings that a user should not overlook. */
export function WarningBoxes(props: {
  trans: TranslationBundle;
  warnings: readonly IDocumentWarning[];
}): JSX.Element {
  return (
    <>
      {props.warnings
        .map(warning => inWords(props.trans, warning))
        .map((warning, place) => (
          <div
            className="jp-pai-Note"
            data-kind="warning"
            data-code={warning.code}
            key={`${warning.code}-${place}`}
            role="note"
          >
            <strong>
              {props.trans.__('Warning')}: {warning.message}
            </strong>
            {warning.hint && <span>{warning.hint}</span>}
          </div>
        ))}
    </>
  );
}

/** A job's name that opens its page. */
export function JobLink(props: {
  commands: CommandRegistry;
  job: { readonly id: string; readonly name: string };
}): JSX.Element {
  const { commands, job } = props;
  return (
    <button
      className="jp-pai-JobLink"
      onClick={() => void commands.execute(CommandIDs.openJob, { job: job.id })}
      title={job.id}
    >
      {job.name}
    </button>
  );
}

/** Properties of a view: among them the model whose changes it shows. */
export interface IModelProps {
  readonly model: { readonly changed: ISignal<unknown, void> };
}

/** A function of properties as a widget that is rendered again when their model changes. */
export class ModelView<P extends IModelProps> extends ReactWidget {
  constructor(
    private readonly _view: (props: P) => JSX.Element,
    private readonly _props: P
  ) {
    super();
  }

  render(): JSX.Element {
    const View = this._view;
    return (
      <UseSignal signal={this._props.model.changed}>
        {() => <View {...this._props} />}
      </UseSignal>
    );
  }
}
