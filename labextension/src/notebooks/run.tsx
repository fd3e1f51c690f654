/**
 * How a notebook that runs as a job gets on, cell by cell.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { IJobDetail, INotebookRun, INotebookStep } from '../types';
import { isFinal } from '../types';
import { WindowedTable } from '../windowed';
import { duration } from '../words';

interface INotebookTabProps {
  readonly trans: TranslationBundle;
  readonly job: IJobDetail;
  /** Null until it is known. */
  readonly run: INotebookRun | null;
  /** Open the notebook with its outputs. */
  readonly onOpen: () => void;
}

/** How a cell gets on; one that runs in a job that has ended did not end itself. */
export function stepWord(
  trans: TranslationBundle,
  step: INotebookStep,
  isOver: boolean
): string {
  switch (step.state) {
    case 'waiting':
      return isOver ? trans.__('Did not run') : trans.__('Waiting');
    case 'running':
      return isOver ? trans.__('Did not end') : trans.__('Running');
    case 'done':
      return trans.__('Done');
    case 'failed':
      return trans.__('Failed');
  }
}

/** `3 of 12 cells have run`, and the error of the cell that failed. */
function Progress(
  props: INotebookTabProps & { run: INotebookRun }
): JSX.Element {
  const { trans, run } = props;
  const done = run.steps.filter(step => step.state === 'done').length;
  const failed = run.steps.find(step => step.state === 'failed');
  const number = failed ? run.steps.indexOf(failed) + 1 : 0;
  return (
    <>
      <progress
        aria-label={trans.__('Cells that have run')}
        max={run.steps.length}
        value={done}
      />
      <span role="status">
        {trans.__('%1 of %2 cells have run', done, run.steps.length)}
      </span>
      {failed && (
        <div className="jp-pai-Note" data-kind="problem" role="alert">
          <strong>{trans.__('Cell %1 failed: %2', number, run.error)}</strong>
        </div>
      )}
    </>
  );
}

/** The tab. */
export function NotebookTab(props: INotebookTabProps): JSX.Element {
  const { trans, job, run, onOpen } = props;
  const isOver = isFinal(job.state);
  if (!run || run.steps.length === 0) {
    return (
      <p>
        {isOver && run
          ? trans.__('The notebook did not begin.')
          : trans.__('The notebook has not begun yet.')}
      </p>
    );
  }
  const { steps } = run;
  return (
    <>
      <div className="jp-pai-Notebook-head">
        <Progress {...props} run={run} />
        <button className="jp-mod-styled" onClick={onOpen}>
          {trans.__('Open the notebook with its outputs')}
        </button>
      </div>
      <WindowedTable
        columns={[
          { id: 'number', head: trans.__('Cell'), width: 60 },
          { id: 'line', head: trans.__('First line'), width: 420 },
          { id: 'state', head: trans.__('State'), width: 120 },
          { id: 'time', head: trans.__('Took'), width: 100 }
        ]}
        count={steps.length}
        label={trans.__('Cells')}
        row={(place, attributes) => {
          const step = steps[place];
          const state =
            isOver && step.state === 'running' ? 'failed' : step.state;
          return (
            <tr {...attributes} data-step={state} key={step.place}>
              <th scope="row">{place + 1}</th>
              <td className="jp-pai-Notebook-line" title={step.line}>
                {step.line}
              </td>
              <td>{stepWord(trans, step, isOver)}</td>
              <td>
                {step.seconds !== null && duration(trans, step.seconds * 1000)}
              </td>
            </tr>
          );
        }}
        rowHeight={30}
      />
    </>
  );
}
