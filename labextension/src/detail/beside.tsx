/**
 * Logs of other tasks beside the one that is shown, each in a column of its own.
 */

import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect } from '@jupyterlab/ui-components';
import { Panel } from '@lumino/widgets';
import * as React from 'react';
import { ModelView } from '../components';
import type { LogModel } from '../log/model';
import { stateWords } from '../log/tools';
import { LogView } from '../log/view';
import type { DetailModel } from './model';
import { tasksOf } from './model';
import type { IPageProps } from './overview';

/** Columns at most: more are too narrow to read. */
const MOST = 4;

interface IHeadProps {
  /** The log, named so as views name what they show. */
  readonly model: LogModel;
  readonly trans: TranslationBundle;
  readonly onClose: () => void;
}

/** What a column shows, and how to close it. */
function Head(props: IHeadProps): JSX.Element {
  const { model, trans, onClose } = props;
  const name = `${model.target.role}-${model.target.index}`;
  return (
    <>
      <strong>{name}</strong>
      <span className="jp-pai-Detail-live" role="status">
        {stateWords(trans, model)}
      </span>
      <button
        aria-label={trans.__('Close the log of %1', name)}
        className="jp-pai-JobLink"
        onClick={onClose}
      >
        ✕
      </button>
    </>
  );
}

/** A log with its head. It owns the model. */
class Column extends Panel {
  constructor(
    private readonly _model: LogModel,
    rendermime: IRenderMimeRegistry,
    trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-pai-LogColumn');
    const close = () => this.dispose();
    const head = new ModelView(Head, { model: _model, trans, onClose: close });
    head.addClass('jp-pai-Detail-logbar');
    this.log = new LogView(rendermime, trans);
    this.log.model = _model;
    this.addWidget(head);
    this.addWidget(this.log);
  }

  readonly log: LogView;

  /** Whether its lines are shown with their times. */
  set timed(timed: boolean) {
    void this._model.showTimes(timed);
  }

  dispose(): void {
    if (!this.isDisposed) {
      super.dispose();
      this._model.dispose();
    }
  }
}

/** The log of the page, and columns of other tasks beside it. */
export class LogColumns extends Panel {
  constructor(
    private readonly _log: LogView,
    private readonly _model: DetailModel,
    private readonly _rendermime: IRenderMimeRegistry,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-pai-LogColumns');
    this.addWidget(_log);
  }

  /** Show the log of a task beside the others; nothing where there is no room, or no log. */
  add(role: string, index: number): void {
    const log =
      this.widgets.length < MOST
        ? this._model.openLog({ role, index, stream: 'all' })
        : null;
    if (log) {
      const column = new Column(log, this._rendermime, this._trans);
      column.log.wrap = this._wraps;
      this.addWidget(column);
    }
  }

  /** Whether lines are shown with their times, in all columns and those that are added. */
  set timed(timed: boolean) {
    this._model.showTimes(timed);
    for (const column of this.widgets) {
      if (column instanceof Column) {
        column.timed = timed;
      }
    }
  }

  /** Whether long lines are broken instead of scrolled, in all columns. */
  set wrap(wrap: boolean) {
    this._wraps = wrap;
    this._log.wrap = wrap;
    for (const column of this.widgets) {
      if (column instanceof Column) {
        column.log.wrap = wrap;
      }
    }
  }

  private _wraps = false;
}

/** Chooses a task whose log is shown beside the others. */
export function BesideSelect(
  props: IPageProps & { onBeside: (role: string, index: number) => void }
): JSX.Element {
  const { model, trans, onBeside } = props;
  const { job, target } = model.state;
  const tasks = job
    ? tasksOf(job).filter(
        task => task.role !== target?.role || task.index !== target.index
      )
    : [];
  if (tasks.length === 0) {
    return <></>;
  }
  return (
    <HTMLSelect
      aria-label={trans.__('Show another task beside')}
      onChange={event => {
        const { role, index } = tasks[Number(event.target.value)];
        onBeside(role, index);
      }}
      options={[
        { value: -1, label: trans.__('Beside…'), disabled: true },
        ...tasks.map(({ role, index }, value) => ({
          value,
          label: `${role}-${index}`
        }))
      ]}
      value={-1}
    />
  );
}
