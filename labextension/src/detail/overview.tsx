/**
 * What a job is and what can be done with it: the head of its page, and the first of its tabs.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { ProblemBox, StateMark, WarningBoxes } from '../components';
import { CommandIDs } from '../tokens';
import type { IJobDetail } from '../types';
import { isFinal } from '../types';
import { exitWords, worded } from '../worded';
import { dialectWord, duration, phaseBeside, timeText } from '../words';
import { Addresses } from './addresses';
import type { DetailModel } from './model';
import { tasksOf } from './model';
import { isKept, TaskTable } from './tasks';

/** What the parts of the page need. */
export interface IPageProps {
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
    [trans.__('Out of date'), worded(trans, job.doubt, job.doubtWording)],
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
    [trans.__('Stopped if not done by'), timeText(job.endAt ?? null)],
    [
      trans.__('Warning'),
      worded(trans, job.ruleWarning ?? '', job.ruleWarningWording)
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
      job.idle && !job.idle.warned
        ? worded(trans, job.idle.sentence, job.idle.sentenceWording)
        : ''
    ]
  ];
  return facts.filter(([, value]) => value !== '');
}

function Actions(props: IPageProps & { job: IJobDetail }): JSX.Element {
  const { commands, trans, job } = props;
  const over = isFinal(job.state);
  const button = (id: string, word: string, kind = '', title?: string) => (
    <button
      className={`jp-mod-styled ${kind}`}
      onClick={() => void commands.execute(id, { job: job.id })}
      title={title}
    >
      {word}
    </button>
  );
  return (
    <div className="jp-pai-Detail-actions">
      {!over &&
        job.sshCommand &&
        button(
          CommandIDs.connect,
          trans.__('Connect…'),
          '',
          trans.__('Editors, PyCharm, PuTTY and xshell')
        )}
      {job.state === 'RUNNING' &&
        button(
          CommandIDs.openCode,
          trans.__('VS Code'),
          '',
          trans.__('VS Code in the browser, if the image has code-server')
        )}
      {over &&
        button(
          CommandIDs.newBoard,
          trans.__('TensorBoard…'),
          '',
          trans.__('A job that shows the output of this one in TensorBoard')
        )}
      {job.outputPath && (
        <button
          className="jp-mod-styled"
          onClick={() =>
            void commands.execute(CommandIDs.showFiles, {
              path: job.outputPath
            })
          }
          title={trans.__(
            'Files that the job has written to its output folder'
          )}
        >
          {trans.__('Outputs')}
        </button>
      )}
      {tasksOf(job).some(isKept) &&
        button(
          CommandIDs.releaseJob,
          trans.__('Release'),
          '',
          trans.__('Release failed tasks that are kept for debugging')
        )}
      {!over &&
        job.state !== 'STOPPING' &&
        button(CommandIDs.stopJob, trans.__('Stop'), 'jp-mod-warn')}
      {button(
        CommandIDs.cloneJob,
        trans.__('Clone…'),
        '',
        trans.__('Open the document of the job for another submission')
      )}
      {over &&
        button(
          CommandIDs.restartJob,
          trans.__('Restart'),
          '',
          trans.__('Run the job again under its name')
        )}
      {over && button(CommandIDs.deleteJob, trans.__('Delete'), 'jp-mod-warn')}
    </div>
  );
}

/** What shows the job itself needs, too. */
interface IPartProps extends IPageProps {
  readonly job: IJobDetail;
  /** Show the whole reason. */
  readonly onWhy: () => void;
}

/** Why the job is as it is, in a sentence that leads to more. */
function Reason(props: IPartProps): JSX.Element {
  const { trans, job, onWhy } = props;
  const said =
    worded(trans, job.why, job.whyWording) ||
    (job.exit ? exitWords(trans, job.exit).what : '');
  const verdict = verdictWords(trans, job);
  if (!said && !verdict) {
    return <></>;
  }
  return (
    <p className="jp-pai-Detail-reason">
      {[verdict, said].filter(Boolean).join(' ')}{' '}
      <button className="jp-pai-JobLink" onClick={onWhy}>
        {trans.__('Why?')}
      </button>
    </p>
  );
}

/** How many tasks failed in a job that counts as a success; empty when none did. */
export function verdictWords(
  trans: TranslationBundle,
  job: IJobDetail
): string {
  const failed = tasksOf(job).filter(task => task.state === 'FAILED').length;
  return job.state === 'SUCCEEDED' && failed > 0
    ? trans.__('%1 of %2 tasks failed.', failed, job.totalTaskNumber)
    : '';
}

/** The name, the state and what can be done. */
export function Title(props: IPageProps & { job: IJobDetail }): JSX.Element {
  const { model, trans, job } = props;
  const { problem } = model.state;
  return (
    <>
      <header className="jp-pai-Detail-header">
        <h2>{job.name}</h2>
        <StateMark
          failed={verdictWords(trans, job) !== ''}
          trans={trans}
          state={job.state}
        />
        <span>{phaseBeside(trans, job.state, job.phase)}</span>
        <Actions {...props} />
      </header>
      {problem && <ProblemBox trans={trans} problem={problem} />}
    </>
  );
}

/** The job without the rest of its page: for the output of a cell. */
export function JobDetail(
  props: IPageProps & { job: IJobDetail; onWhy: () => void }
): JSX.Element {
  return (
    <>
      <Title {...props} />
      <Overview {...props} />
    </>
  );
}

/** What the job is, where it is reached and what its tasks do. */
export function Overview(props: IPartProps): JSX.Element {
  const { model, commands, trans, job } = props;
  return (
    <>
      <Reason {...props} />
      <WarningBoxes trans={trans} warnings={job.warnings} />
      {job.sweep && (
        <p>
          <button
            className="jp-pai-JobLink"
            onClick={() =>
              void commands.execute(CommandIDs.openSweep, { sweep: job.sweep })
            }
          >
            {trans.__('All jobs of the sweep %1', job.sweep)}
          </button>
        </p>
      )}
      <Addresses commands={commands} job={job} trans={trans} />
      <dl className="jp-pai-Detail-facts">
        {factsOf(trans, job).map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <TaskTable
        commands={commands}
        job={job.id}
        onLog={({ role, index }) =>
          model.showLog({ role, index, stream: 'all' })
        }
        tasks={tasksOf(job)}
        trans={trans}
      />
    </>
  );
}
