/**
 * The page of a sweep: its jobs by their values, and what can be done with all of them.
 */

import { InputDialog } from '@jupyterlab/apputils';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import { JobLink, ModelView, ProblemBox, StateMark } from '../components';
import { Cell } from '../detail/tasks';
import { reportProblem } from '../feedback';
import { paiIcon } from '../icons';
import type { IPaiClient } from '../tokens';
import { CommandIDs, DOMAIN } from '../tokens';
import type { IJobSummary, JobState } from '../types';
import { isFinal } from '../types';
import type { IColumn } from '../windowed';
import { WindowedTable } from '../windowed';
import { worded } from '../worded';
import { stateWord } from '../words';
import type { SweepModel } from './model';

interface ISweepProps {
  readonly model: SweepModel;
  readonly client: IPaiClient;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

const STATES: readonly JobState[] = [
  'RUNNING',
  'WAITING',
  'STOPPING',
  'SUCCEEDED',
  'FAILED',
  'STOPPED'
];

/** `Running 1 · Succeeded 3`: the states with their numbers. */
export function countsText(
  trans: TranslationBundle,
  jobs: readonly IJobSummary[]
): string {
  return STATES.map(state => ({
    word: stateWord(trans, state),
    count: jobs.filter(job => job.state === state).length
  }))
    .filter(({ count }) => count > 0)
    .map(({ word, count }) => `${word} ${count}`)
    .join(' · ');
}

/** Submit the sweep again under another name, and show that. */
async function cloneSweep(props: ISweepProps): Promise<void> {
  const { model, client, commands, trans } = props;
  const { value } = await InputDialog.getText({
    title: trans.__('Submit the sweep again'),
    label: trans.__('Name of the new sweep'),
    text: `${model.name}-2`
  });
  if (!value) {
    return;
  }
  try {
    const { name } = await client.cloneSweep(model.name, value);
    await commands.execute(CommandIDs.openSweep, { sweep: name });
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

/** What can be done with the whole sweep. */
function Actions(props: ISweepProps): JSX.Element {
  const { model, commands, trans } = props;
  const jobs = model.state.rows.map(row => row.job);
  const button = (
    what: string,
    word: string,
    meant: readonly IJobSummary[]
  ): JSX.Element => (
    <button
      className="jp-mod-styled"
      disabled={meant.length === 0}
      onClick={() =>
        void commands
          .execute(CommandIDs.changeJobs, {
            what,
            jobs: meant.map(job => job.uid)
          })
          .then(() => model.load())
      }
    >
      {word}
    </button>
  );
  const failed = jobs.filter(({ state }) =>
    ['FAILED', 'STOPPED'].includes(state)
  );
  const goingOn = jobs.filter(({ state }) => !isFinal(state));
  const ended = jobs.filter(({ state }) => isFinal(state));
  return (
    <div className="jp-pai-JobTable-bar">
      <span role="status">{countsText(trans, jobs)}</span>
      {button('stop', trans.__('Stop all'), goingOn)}
      {button('restart', trans.__('Run failed ones again'), failed)}
      <button
        className="jp-mod-styled"
        disabled={jobs.length === 0}
        onClick={() => void cloneSweep(props)}
      >
        {trans.__('Clone…')}
      </button>
      {button('delete', trans.__('Delete ended ones'), ended)}
    </div>
  );
}

/** The head of a column that orders the table. */
function columnOf(
  { model }: ISweepProps,
  id: string,
  word: string,
  width: number
): IColumn {
  const { column, descends } = model.state.order;
  const isOrder = column === id;
  return {
    id,
    width,
    sort: isOrder ? (descends ? 'descending' : 'ascending') : 'none',
    head: (
      <button className="jp-pai-JobLink" onClick={() => model.orderBy(id)}>
        {word}
        {isOrder && (descends ? ' ▼' : ' ▲')}
      </button>
    )
  };
}

/** The page as a function of the model's state. */
export function SweepView(props: ISweepProps): JSX.Element {
  const { model, commands, trans } = props;
  const { rows, names, loaded, problem } = model.state;
  return (
    <>
      <h2>{trans.__('Sweep %1', model.name)}</h2>
      {problem && <ProblemBox problem={problem} trans={trans} />}
      {!loaded && <p>{trans.__('Loading…')}</p>}
      {rows.length > 0 && (
        <>
          <Actions {...props} />
          <WindowedTable
            columns={[
              columnOf(props, 'name', trans.__('Name'), 180),
              ...names.map(name => columnOf(props, `value:${name}`, name, 100)),
              columnOf(props, 'state', trans.__('State'), 120),
              columnOf(props, 'result', trans.__('Last line of output'), 320)
            ]}
            count={rows.length}
            label={trans.__('Jobs of the sweep')}
            row={(place, attributes) => {
              const { job, values, result } = rows[place];
              return (
                <tr {...attributes} data-job={job.name} key={job.uid}>
                  <th scope="row" title={job.id}>
                    <JobLink commands={commands} job={job} />
                  </th>
                  {names.map(name => (
                    <Cell key={name} text={values[name] ?? ''} />
                  ))}
                  <td title={worded(trans, job.why, job.whyWording)}>
                    <StateMark state={job.state} trans={trans} />
                  </td>
                  <Cell text={result ?? ''} />
                </tr>
              );
            }}
            rowHeight={34}
          />
        </>
      )}
    </>
  );
}

/** The page. It owns the model. */
export class SweepPage extends ModelView<ISweepProps> {
  constructor(options: {
    model: SweepModel;
    client: IPaiClient;
    commands: CommandRegistry;
    translator: ITranslator;
  }) {
    const { model, client, commands, translator } = options;
    const trans = translator.load(DOMAIN);
    super(shown => <SweepView {...shown} />, {
      model,
      client,
      commands,
      trans
    });
    this.model = model;
    this.addClass('jp-pai-JobTable');
    this.title.label = trans.__('Sweep %1', model.name);
    this.title.icon = paiIcon;
    this.title.closable = true;
    void model.load();
  }

  readonly model: SweepModel;

  dispose(): void {
    super.dispose();
    this.model.dispose();
  }

  /** What was missed while it was not looked at is read at once. */
  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this.model.refresh();
  }
}
