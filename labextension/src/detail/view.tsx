/**
 * A job's page: what it is and does, its tasks and addresses, its output.
 */

import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect, UseSignal } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { Panel, SplitPanel } from '@lumino/widgets';
import * as React from 'react';
import { paiIcon } from '../icons';
import { LogView } from '../log/view';
import { ModelView, ProblemBox, StateMark, WarningBoxes } from '../components';
import { CommandIDs, DOMAIN } from '../tokens';
import type { IJobDetail, IService, LogStream } from '../types';
import { isFinal } from '../types';
import {
  dialectWord,
  duration,
  liveWord,
  phaseBeside,
  timeText
} from '../words';
import type { DetailModel } from './model';
import { tasksOf } from './model';
import { isKept, TaskTable } from './tasks';
import { WhyNote } from './why';

/** What the parts of the page need. */
interface IPageProps {
  readonly model: DetailModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** How long the job ran; empty before its end. */
function ranFor(trans: TranslationBundle, job: IJobDetail): string {
  const { launchedTime, completedTime } = job;
  return launchedTime && completedTime
    ? duration(trans, Date.parse(completedTime) - Date.parse(launchedTime))
    : '';
}

/** Label and value of each fact worth a line; empty values are left out. */
function factsOf(
  trans: TranslationBundle,
  job: IJobDetail
): [string, string][] {
  const { user, platform, resource } = job.retryDetails;
  const facts: [string, string][] = [
    [trans.__('Out of date'), job.doubt],
    [trans.__('Description'), job.description],
    [trans.__('Workspace name'), job.address],
    [trans.__('User'), job.username],
    [trans.__('Virtual cluster'), job.virtualCluster],
    [trans.__('Image'), job.image],
    [trans.__('Dialect'), dialectWord(job.dialect)],
    [trans.__('Submitted'), timeText(job.submissionTime)],
    [trans.__('Started'), timeText(job.launchedTime)],
    [trans.__('Ran for'), ranFor(trans, job)],
    [
      trans.__('Retries'),
      job.retries > 0
        ? trans.__(
            '%1 (own failures %2, platform %3, resources %4)',
            job.retries,
            user,
            platform,
            resource
          )
        : ''
    ],
    [trans.__('Not used since'), timeText(job.idle?.since ?? null)],
    [
      job.idle?.warned
        ? trans.__('Stopped unless used by')
        : trans.__('Stopped if idle until'),
      timeText(job.idle?.stopAt ?? null)
    ],
    [
      trans.__('Idle clock'),
      job.idle && !job.idle.warned ? job.idle.sentence : ''
    ],
    [trans.__('Ended'), job.exit?.message ?? ''],
    [trans.__('What to do'), job.exit?.remedy ?? '']
  ];
  return facts.filter(([, value]) => value !== '');
}

function ServiceButton(
  props: IPageProps & {
    job: IJobDetail;
    service: IService;
    leading: boolean;
  }
): JSX.Element {
  const { commands, trans, job, service, leading } = props;
  const { label, role, index } = service;
  const open = () =>
    void commands.execute(CommandIDs.openService, {
      job: job.id,
      label,
      role,
      index
    });
  return (
    <button
      className={leading ? 'jp-mod-styled jp-mod-accept' : 'jp-mod-styled'}
      disabled={service.state !== 'RUNNING'}
      onClick={open}
      title={service.url}
    >
      {job.totalTaskNumber > 1
        ? trans.__('Open %1 (%2-%3)', label, role, index)
        : trans.__('Open %1', label)}
    </button>
  );
}

function Actions(props: IPageProps & { job: IJobDetail }): JSX.Element {
  const { commands, trans, job } = props;
  const copy = () =>
    void commands.execute(CommandIDs.copySsh, { command: job.sshCommand });
  const stop = () => void commands.execute(CommandIDs.stopJob, { job: job.id });
  return (
    <div className="jp-pai-Detail-actions">
      {job.services.map((service, place) => (
        <ServiceButton
          {...props}
          key={service.alias}
          leading={place === 0}
          service={service}
        />
      ))}
      <button
        className="jp-mod-styled"
        disabled={!job.sshCommand || job.state !== 'RUNNING'}
        onClick={copy}
        title={job.sshCommand ?? undefined}
      >
        {trans.__('Copy SSH command')}
      </button>
      <button
        className="jp-mod-styled"
        disabled={!job.sshCommand || job.state !== 'RUNNING'}
        onClick={() =>
          void commands.execute(CommandIDs.connect, { job: job.id })
        }
        title={trans.__('Editors, PyCharm, PuTTY and xshell')}
      >
        {trans.__('Connect…')}
      </button>
      {tasksOf(job).some(isKept) && (
        <button
          className="jp-mod-styled"
          onClick={() =>
            void commands.execute(CommandIDs.releaseJob, { job: job.id })
          }
          title={trans.__('Release failed tasks that are kept for debugging')}
        >
          {trans.__('Release')}
        </button>
      )}
      <button
        className="jp-mod-styled jp-mod-warn"
        disabled={isFinal(job.state) || job.state === 'STOPPING'}
        onClick={stop}
      >
        {trans.__('Stop')}
      </button>
      {isFinal(job.state) && (
        <button
          className="jp-mod-styled"
          onClick={() =>
            void commands.execute(CommandIDs.restartJob, { job: job.id })
          }
          title={trans.__('Run the job again under its name')}
        >
          {trans.__('Restart')}
        </button>
      )}
      {isFinal(job.state) && (
        <button
          className="jp-mod-styled jp-mod-warn"
          onClick={() =>
            void commands.execute(CommandIDs.deleteJob, { job: job.id })
          }
        >
          {trans.__('Delete')}
        </button>
      )}
    </div>
  );
}

/** The upper part of the page as a function of the model's state. */
export function JobDetail(props: IPageProps): JSX.Element {
  const { model, commands, trans } = props;
  const { job, why, problem } = model.state;
  if (!job) {
    return problem ? (
      <ProblemBox trans={trans} problem={problem} />
    ) : (
      <p>{trans.__('Loading…')}</p>
    );
  }
  return (
    <>
      <header className="jp-pai-Detail-header">
        <h2>{job.name}</h2>
        <StateMark trans={trans} state={job.state} />
        <span>{phaseBeside(trans, job.state, job.phase)}</span>
      </header>
      {problem && <ProblemBox trans={trans} problem={problem} />}
      <WhyNote
        trans={trans}
        job={job}
        onQueue={() => void commands.execute(CommandIDs.showCluster)}
        why={why}
      />
      <WarningBoxes trans={trans} warnings={job.warnings} />
      <Actions {...props} job={job} />
      <dl className="jp-pai-Detail-facts">
        {factsOf(trans, job).map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <TaskTable {...props} job={job.id} tasks={tasksOf(job)} />
    </>
  );
}

/** Which output is shown, as a function of the model's state. */
function LogBar(props: IPageProps): JSX.Element {
  const { model, trans } = props;
  const { job, target, log } = model.state;
  if (!job || !target) {
    return <></>;
  }
  const tasks = tasksOf(job);
  const here = tasks.findIndex(
    task => task.role === target.role && task.index === target.index
  );
  return (
    <>
      <strong>{trans.__('Log')}</strong>
      <HTMLSelect
        aria-label={trans.__('Task whose log is shown')}
        onChange={event => {
          const { role, index } = tasks[Number(event.target.value)];
          model.showLog({ ...target, role, index });
        }}
        options={tasks.map((task, value) => ({
          value,
          label: `${task.role}-${task.index}`
        }))}
        value={here}
      />
      <HTMLSelect
        aria-label={trans.__('Which output')}
        onChange={event =>
          model.showLog({ ...target, stream: event.target.value as LogStream })
        }
        options={[
          { value: 'all', label: trans.__('All output') },
          { value: 'stdout', label: trans.__('Standard output') },
          { value: 'stderr', label: trans.__('Standard error') }
        ]}
        value={target.stream}
      />
      <span className="jp-pai-Detail-live">
        {log && (
          <UseSignal signal={log.changed}>
            {() => (
              <>{!log.state.complete && liveWord(trans, log.state.live)}</>
            )}
          </UseSignal>
        )}
      </span>
    </>
  );
}

/** The page of one job. It owns the model. */
export class JobPage extends SplitPanel {
  constructor(options: JobPage.IOptions) {
    super({ orientation: 'vertical', spacing: 1 });
    const { model, commands, translator, rendermime } = options;
    const trans = translator.load(DOMAIN);
    const props = { model, commands, trans };
    this.model = model;
    this.addClass('jp-pai-JobPage');
    this.title.icon = paiIcon;
    this.title.closable = true;
    const detail = new ModelView(JobDetail, props);
    detail.addClass('jp-pai-Detail');
    const bar = new ModelView(LogBar, props);
    bar.addClass('jp-pai-Detail-logbar');
    this._log = new LogView(rendermime, trans);
    const output = new Panel();
    output.addClass('jp-pai-JobPage-output');
    output.addWidget(bar);
    output.addWidget(this._log);
    this.addWidget(detail);
    this.addWidget(output);
    this.setRelativeSizes([3, 2]);
    model.changed.connect(this._update, this);
    this._update();
    model.start();
  }

  readonly model: DetailModel;

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.model.changed.disconnect(this._update, this);
    super.dispose();
    this.model.dispose();
  }

  private _update(): void {
    const { job, log } = this.model.state;
    this.title.label = job?.name ?? this.model.name;
    if (this._log.model !== log) {
      this._log.model = log;
    }
  }

  private readonly _log: LogView;
}

/** Options of {@link JobPage}. */
export namespace JobPage {
  /** What the page is made from. */
  export interface IOptions {
    readonly model: DetailModel;
    readonly commands: CommandRegistry;
    readonly rendermime: IRenderMimeRegistry;
    readonly translator: ITranslator;
  }
}
