/**
 * All jobs as a table in the main area: columns, order, filters, and changes of many at once.
 */

import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { JobLink, ModelView, ProblemBox, StateMark } from '../components';
import { Cell } from '../detail/tasks';
import { paiIcon } from '../icons';
import { CommandIDs, DOMAIN } from '../tokens';
import type { IJobSummary } from '../types';
import type { IColumn } from '../windowed';
import { SPARE, WindowedTable } from '../windowed';
import { worded } from '../worded';
import { duration, timeText } from '../words';
import { Filters } from './filters';
import type { JobTableModel } from './table_model';
import type { SavedViews } from './views';

/** What the parts of the table need. */
export interface ITableProps {
  readonly model: JobTableModel;
  readonly views: SavedViews;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** From one time of the wire to another, or to now; empty without a beginning. */
function between(
  trans: TranslationBundle,
  start: string | null,
  end: string | null
): string {
  const until = end ? Date.parse(end) : Date.now();
  return start ? duration(trans, until - Date.parse(start)) : '';
}

/** How long a job waited before its start, or has waited. */
export function waited(trans: TranslationBundle, job: IJobSummary): string {
  const end = job.launchedTime ?? job.completedTime;
  return between(trans, job.submissionTime, end);
}

/** What can be done with all that is marked. */
function Marked(props: ITableProps): JSX.Element {
  const { model, commands, trans } = props;
  const jobs = [...model.state.marked.keys()];
  const button = (what: string, word: string) => (
    <button
      className="jp-mod-styled"
      disabled={jobs.length === 0}
      onClick={() =>
        void commands
          .execute(CommandIDs.changeJobs, { what, jobs })
          .then(() => model.refresh())
      }
    >
      {word}
    </button>
  );
  return (
    <div className="jp-pai-JobTable-bar">
      <span role="status">
        {trans._n('%1 job', '%1 jobs', model.state.total)}
        {jobs.length > 0 && ` · ${trans.__('%1 marked', jobs.length)}`}
      </span>
      {button('stop', trans.__('Stop'))}
      {button('restart', trans.__('Restart'))}
      {button('clone', trans.__('Clone…'))}
      {button('tag', trans.__('Tag…'))}
      {button('delete', trans.__('Delete'))}
    </div>
  );
}

/** The head of a column that orders the table. */
function columnOf(
  { model }: ITableProps,
  id: string,
  word: string,
  width: number
): IColumn {
  const [field, direction] = model.state.query.order.split(',');
  const order = direction === 'ASC' ? 'ascending' : 'descending';
  return {
    id,
    width,
    sort: field === id ? order : 'none',
    head: (
      <button className="jp-pai-JobLink" onClick={() => void model.orderBy(id)}>
        {word}
        {field === id && (direction === 'ASC' ? ' ▲' : ' ▼')}
      </button>
    )
  };
}

/** The GPU types of a job. */
function Types({ types }: { types: readonly string[] }): JSX.Element {
  const text = types.join(', ');
  return (
    <td className={SPARE} title={text}>
      {text}
    </td>
  );
}

/** The row of a job. It is rendered again when the job was read again, and not at each turn of the wheel. */
const JobRow = React.memo(function JobRow(
  props: Pick<ITableProps, 'model' | 'commands' | 'trans'> & {
    job: IJobSummary;
    isMarked: boolean;
    place: number;
    style: React.CSSProperties;
  }
): JSX.Element {
  const { model, commands, trans, job, isMarked, place, style } = props;
  const failed = job.exitStatus !== null && job.exitStatus !== 0;
  return (
    <tr aria-rowindex={place} data-job={job.name} style={style}>
      <td>
        <input
          aria-label={trans.__('Mark %1', job.name)}
          checked={isMarked}
          onChange={event => model.mark(job, event.target.checked)}
          type="checkbox"
        />
      </td>
      <th scope="row" title={job.id}>
        <JobLink commands={commands} job={job} />
      </th>
      <td title={worded(trans, job.why, job.whyWording)}>
        <StateMark failed={failed} state={job.state} trans={trans} />
      </td>
      <Cell text={job.username} />
      <Cell text={job.virtualCluster} />
      <Cell text={String(job.totalGpuNumber)} />
      <Types types={job.gpuTypes} />
      <Cell text={String(job.totalTaskNumber)} />
      <Cell text={timeText(job.submissionTime)} />
      <Cell text={waited(trans, job)} />
      <Cell text={between(trans, job.launchedTime, job.completedTime)} />
      <Cell text={String(job.retries)} />
    </tr>
  );
});

/** The row of a job, or an ellipsis until the job is read. */
function rowOf(
  props: ITableProps,
  job: IJobSummary | undefined,
  attributes: { 'aria-rowindex': number; style: React.CSSProperties },
  columns: number
): JSX.Element {
  const { model, commands, trans } = props;
  if (!job) {
    return (
      <tr {...attributes} key={attributes['aria-rowindex']}>
        <td colSpan={columns}>…</td>
      </tr>
    );
  }
  return (
    <JobRow
      commands={commands}
      isMarked={model.state.marked.has(job.uid)}
      job={job}
      key={job.uid}
      model={model}
      place={attributes['aria-rowindex']}
      style={attributes.style}
      trans={trans}
    />
  );
}

/** The table as a function of the model's state. */
export function JobTable(props: ITableProps): JSX.Element {
  const { model, trans } = props;
  const { rows, total, marked, loaded, problem } = model.state;
  const isAll = marked.size > 0 && marked.size >= rows.size;
  const columns: IColumn[] = [
    {
      id: 'mark',
      width: 44,
      head: (
        <input
          aria-label={trans.__('Mark all rows in sight')}
          checked={isAll}
          onChange={event => model.markAll(event.target.checked)}
          type="checkbox"
        />
      )
    },
    columnOf(props, 'name', trans.__('Name'), 220),
    columnOf(props, 'state', trans.__('State'), 120),
    columnOf(props, 'username', trans.__('User'), 100),
    columnOf(props, 'virtualCluster', trans.__('Virtual cluster'), 120),
    columnOf(props, 'totalGpuNumber', trans.__('GPUs'), 60),
    {
      id: 'gpuTypes',
      head: trans.__('GPU type'),
      width: 100,
      isSpare: true
    },
    columnOf(props, 'totalTaskNumber', trans.__('Tasks'), 60),
    columnOf(props, 'submissionTime', trans.__('Submitted'), 170),
    { id: 'waited', head: trans.__('Waited'), width: 100 },
    columnOf(props, 'launchedTime', trans.__('Ran for'), 100),
    columnOf(props, 'retries', trans.__('Retries'), 70)
  ];
  const onSight = React.useCallback(
    (first: number, end: number) => model.look(first, end),
    [model]
  );
  return (
    <>
      <Filters {...props} />
      <Marked {...props} />
      {problem && <ProblemBox problem={problem} trans={trans} />}
      {loaded && total === 0 && !problem && (
        <p>{trans.__('No job matches.')}</p>
      )}
      {total > 0 && (
        <WindowedTable
          columns={columns}
          count={total}
          label={trans.__('Jobs')}
          onSight={onSight}
          row={(place, attributes) =>
            rowOf(props, rows.get(place), attributes, columns.length)
          }
          rowHeight={34}
        />
      )}
    </>
  );
}

/** The page of the table. It owns the model. */
export class JobTablePage extends ModelView<ITableProps> {
  constructor(options: {
    model: JobTableModel;
    views: SavedViews;
    commands: CommandRegistry;
    translator: ITranslator;
  }) {
    const { model, views, commands, translator } = options;
    const trans = translator.load(DOMAIN);
    super(shown => <JobTable {...shown} />, { model, views, commands, trans });
    this.model = model;
    this.addClass('jp-pai-JobTable');
    this.title.label = trans.__('All jobs');
    this.title.icon = paiIcon;
    this.title.closable = true;
    void model.ask({});
    void model.loadGpuTypes();
  }

  readonly model: JobTableModel;

  dispose(): void {
    super.dispose();
    this.model.dispose();
  }
}
