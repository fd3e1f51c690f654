/**
 * The sidebar: a filter and the list of jobs.
 */

import { Time } from '@jupyterlab/coreutils';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import {
  HTMLSelect,
  InputGroup,
  PanelWithToolbar
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { Debouncer } from '@lumino/polling';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import { paiIcon } from '../icons';
import { ModelView, ProblemBox, StateMark } from '../components';
import type {
  IJobListModel,
  IJobListState,
  IShares,
  JobScope
} from '../tokens';
import { CommandIDs, DOMAIN } from '../tokens';
import type { IAnnouncement, IJobSummary } from '../types';
import { worded } from '../worded';
import { liveWord, phaseBeside, timeText } from '../words';
import { ReceivedShares, SharedMark } from './shares';

/** Typing rests this long before the list is asked for, in milliseconds. */
const REST = 250;

/** What the parts of the list need. */
interface IListProps {
  readonly model: IJobListModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** A row's second line: what it does, how much it takes, since when. */
function rowFacts(trans: TranslationBundle, job: IJobSummary): string {
  const facts = [
    worded(trans, job.why, job.whyWording) ||
      phaseBeside(trans, job.state, job.phase),
    trans._n('%1 task', '%1 tasks', job.totalTaskNumber)
  ];
  if (job.totalGpuNumber > 0) {
    facts.push(trans._n('%1 GPU', '%1 GPUs', job.totalGpuNumber));
  }
  facts.push(Time.formatHuman(job.submissionTime));
  return facts.filter(fact => fact !== '').join(' · ');
}

/** A row. It is rendered again when the job was read again or selected, and not with each row that is. */
const JobRow = React.memo(function JobRow(
  props: IListProps & {
    job: IJobSummary;
    shares: IShares;
    selected: boolean;
  }
): JSX.Element {
  const { model, commands, trans, job, selected } = props;
  const select = () => model.select(job.uid);
  const row = React.useRef<HTMLLIElement>(null);
  React.useEffect(() => {
    if (selected) {
      row.current?.scrollIntoView({ block: 'nearest' });
    }
  }, [selected]);
  return (
    <li
      aria-selected={selected}
      className="jp-pai-JobList-row"
      data-job={job.name}
      id={`jp-pai-job-${job.uid}`}
      onClick={select}
      onContextMenu={select}
      onDoubleClick={() => void commands.execute(CommandIDs.openJob)}
      ref={row}
      role="option"
      title={job.id}
    >
      <span className="jp-pai-JobList-name">{job.name}</span>
      <StateMark
        failed={job.exitStatus !== null && job.exitStatus !== 0}
        state={job.state}
        trans={trans}
      />
      <span className="jp-pai-JobList-facts">{rowFacts(trans, job)}</span>
      <SharedMark trans={trans} shares={props.shares} uid={job.uid} />
      {job.warnings > 0 && (
        <span className="jp-pai-JobList-warnings">
          {trans._n('%1 warning', '%1 warnings', job.warnings)}
        </span>
      )}
    </li>
  );
});

/** The uid that an arrow key leads to from the selected row; null when the key is not one. */
export function rowAfterKey(state: IJobListState, key: string): string | null {
  const { jobs, selected } = state;
  const last = jobs.length - 1;
  const here = jobs.findIndex(job => job.uid === selected);
  const places: Record<string, number> = {
    ArrowDown: Math.min(here + 1, last),
    ArrowUp: Math.max(here - 1, 0),
    Home: 0,
    End: last
  };
  return jobs[places[key] ?? -1]?.uid ?? null;
}

function JobRows(props: IListProps): JSX.Element {
  const { model, commands, trans } = props;
  const { jobs, selected, shares } = model.state;
  const open = () => void commands.execute(CommandIDs.openJob);
  const onKeyDown = (event: React.KeyboardEvent) => {
    const next = rowAfterKey(model.state, event.key);
    if (next !== null) {
      model.select(next);
    } else if (event.key === 'Enter' || event.key === ' ') {
      open();
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <ul
      aria-activedescendant={selected ? `jp-pai-job-${selected}` : undefined}
      aria-label={trans.__('Jobs')}
      className="jp-pai-JobList-rows"
      onFocus={() => selected ?? model.select(jobs[0]?.uid ?? null)}
      onKeyDown={onKeyDown}
      role="listbox"
      tabIndex={0}
    >
      {jobs.map(job => (
        <JobRow
          commands={commands}
          job={job}
          // One that comes to the first has another row: a row out of sight does not move through those in sight.
          key={`${job.uid} ${job.state === 'WAITING'}`}
          model={model}
          selected={job.uid === selected}
          shares={shares}
          trans={trans}
        />
      ))}
    </ul>
  );
}

/** What stands in place of rows when there are none. */
function EmptyList(props: IListProps): JSX.Element {
  const { model, commands, trans } = props;
  const { keyword, scope } = model.state;
  if (keyword || scope === 'active') {
    return (
      <p className="jp-pai-JobList-empty">{trans.__('No job matches.')}</p>
    );
  }
  return (
    <div className="jp-pai-JobList-empty">
      <p>{trans.__('No jobs yet.')}</p>
      <button
        className="jp-mod-styled jp-mod-accept"
        onClick={() => void commands.execute(CommandIDs.newJob)}
      >
        {trans.__('Begin with a template')}
      </button>
      <button
        className="jp-mod-styled"
        onClick={() => void commands.execute(CommandIDs.importFile)}
      >
        {trans.__('Import a job file…')}
      </button>
    </div>
  );
}

function Filter(props: IListProps): JSX.Element {
  const { model, trans } = props;
  const [keyword, setKeyword] = React.useState(model.state.keyword);
  const rest = React.useMemo(
    () =>
      new Debouncer<void, unknown, [string]>(
        word => model.setKeyword(word),
        REST
      ),
    [model]
  );
  React.useEffect(() => () => rest.dispose(), [rest]);
  return (
    <div className="jp-pai-JobList-filter">
      <InputGroup
        aria-label={trans.__('Filter jobs by name')}
        onChange={event => {
          setKeyword(event.target.value);
          void rest.invoke(event.target.value);
        }}
        placeholder={trans.__('Filter jobs by name')}
        rightIcon="ui-components:search"
        type="search"
        value={keyword}
      />
      <HTMLSelect
        aria-label={trans.__('Which jobs')}
        onChange={event => model.setScope(event.target.value as JobScope)}
        options={[
          { value: 'all', label: trans.__('All') },
          { value: 'active', label: trans.__('Active') }
        ]}
        value={model.state.scope}
      />
    </div>
  );
}

/** What administrators tell all users. */
function Notice(props: {
  trans: TranslationBundle;
  announcement: IAnnouncement;
}): JSX.Element {
  const { trans, announcement } = props;
  const { text, until, by, noStartsFrom } = announcement;
  return (
    <div className="jp-pai-JobList-notice" role="status">
      <p>{text}</p>
      {noStartsFrom && (
        <p>
          {trans.__(
            'From %1 on no job starts; running jobs go on.',
            timeText(noStartsFrom)
          )}
        </p>
      )}
      <small>
        {until
          ? trans.__('Announced by %1 until %2', by, timeText(until))
          : trans.__('Announced by %1', by)}
      </small>
    </div>
  );
}

/** The content of the sidebar as a function of the model's state. */
export function JobList(props: IListProps): JSX.Element {
  const { model, trans } = props;
  const { jobs, total, shares, loaded, live, problem } = model.state;
  const { announcement } = model.state;
  return (
    <>
      {announcement && <Notice trans={trans} announcement={announcement} />}
      <Filter {...props} />
      {problem && <ProblemBox trans={trans} problem={problem} />}
      {!loaded && (
        <p className="jp-pai-JobList-empty">{trans.__('Loading…')}</p>
      )}
      {jobs.length > 0 && <JobRows {...props} />}
      {jobs.length === 0 && loaded && !problem && <EmptyList {...props} />}
      <ReceivedShares {...props} shares={shares} />
      {total > jobs.length && (
        <button
          className="jp-mod-styled jp-pai-JobList-more"
          onClick={() => model.showMore()}
        >
          {trans.__('Show more (%1 of %2 shown)', jobs.length, total)}
        </button>
      )}
      <span className="jp-pai-JobList-live" data-live={live} role="status">
        {loaded && liveWord(trans, live && !problem)}
      </span>
    </>
  );
}

/** The sidebar panel with its toolbar. */
export class JobsPanel extends PanelWithToolbar {
  constructor(options: JobsPanel.IOptions) {
    super();
    const trans = options.translator.load(DOMAIN);
    this.id = 'jp-pai-jobs';
    this.addClass('jp-pai-JobsPanel');
    this.title.icon = paiIcon;
    this.title.caption = trans.__('PAI jobs');
    this.toolbar.node.setAttribute('aria-label', trans.__('PAI jobs'));
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('PAI jobs'));
    this._model = options.model;
    const { model, commands } = options;
    this._body = new ModelView(JobList, { model, commands, trans });
    this._body.addClass('jp-pai-JobList');
    this.addWidget(this.toolbar);
    this.addWidget(this._body);
  }

  /** What was missed while it was not looked at is read at once. */
  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    void this._model.refresh();
  }

  protected onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    const rows = this._body.node.querySelector<HTMLElement>('[role="listbox"]');
    (rows ?? this._body.node.querySelector('input'))?.focus();
  }

  private readonly _body: ModelView<IListProps>;
  private readonly _model: IJobListModel;
}

/** Options of {@link JobsPanel}. */
export namespace JobsPanel {
  /** What the panel is made from. */
  export interface IOptions {
    readonly model: IJobListModel;
    readonly commands: CommandRegistry;
    readonly translator: ITranslator;
  }
}
