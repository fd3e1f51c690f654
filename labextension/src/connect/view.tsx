/**
 * What to tell each program to reach a task, and the doctor's verdicts. Functions of the model's state.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { allowedWords, untilWords } from '../jobs/shares';
import { ProblemBox } from '../components';
import type { IDoctorReport, IFinding, IGuide } from '../types';
import { inLocale } from '../language';
import type { ConnectModel } from './model';
import { PrivateKey } from './private_key';
import { Copied, Programs } from './programs';
import { Shares } from './shares';

/** What the parts need. */
export interface IConnectProps {
  readonly model: ConnectModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** Names of values with the values; each can be selected and copied. */
function Values(props: {
  rows: readonly (readonly [string, string | number])[];
}): JSX.Element {
  return (
    <dl className="jp-pai-Connect-values">
      {props.rows.map(([label, value]) => (
        <React.Fragment key={label}>
          <dt>{label}</dt>
          <dd>
            <code>{value}</code>
          </dd>
        </React.Fragment>
      ))}
    </dl>
  );
}

function Ssh(props: IConnectProps & { guide: IGuide }): JSX.Element {
  const { commands, trans, guide } = props;
  return (
    <section aria-label={trans.__('SSH')}>
      <h3>{trans.__('SSH')}</h3>
      <p>
        {trans.__(
          'Once on your computer: pip install jupyter-pai, then pai ssh-config. After that these work:'
        )}
      </p>
      <p className="jp-pai-Connect-command">
        <Copied commands={commands} text={guide.command} trans={trans} />
      </p>
    </section>
  );
}

function Editors(props: IConnectProps & { guide: IGuide }): JSX.Element {
  const { trans, guide } = props;
  return (
    <section aria-label={trans.__('Editors')}>
      <h3>{trans.__('Editors')}</h3>
      <p className="jp-pai-Connect-links">
        {guide.links.map(link => (
          <a data-editor={link.editor} href={link.url} key={link.editor}>
            {link.name}
          </a>
        ))}
      </p>
    </section>
  );
}

function PyCharm(props: IConnectProps & { guide: IGuide }): JSX.Element {
  const { trans, guide } = props;
  const { host, port, username, authentication, interpreter } = guide.pycharm;
  return (
    <details>
      <summary>{trans.__('PyCharm')}</summary>
      <ol>
        <li>
          {trans.__(
            'Settings > Tools > SSH Configurations > +: type these values, then Test Connection.'
          )}
          <Values
            rows={[
              [trans.__('Host'), host],
              [trans.__('Port'), port],
              [trans.__('Username'), username],
              [trans.__('Authentication type'), authentication]
            ]}
          />
        </li>
        <li>
          {trans.__(
            'Settings > Python > Interpreter > Add Interpreter > On SSH: choose that configuration and this interpreter.'
          )}
          <Values rows={[[trans.__('Interpreter'), interpreter]]} />
        </li>
        <li>
          {trans.__(
            'Settings > Build, Execution, Deployment > Deployment: an SFTP server with that configuration, and this deployment path.'
          )}
          <Values rows={[[trans.__('Deployment path'), guide.directory]]} />
        </li>
        <li>
          {trans.__(
            'Tools > Deployment > Automatic Upload: On explicit save action, or Always.'
          )}
        </li>
      </ol>
      <p>
        {trans.__(
          'pai connect JOB --pycharm FOLDER writes the first and the last two into a project.'
        )}
      </p>
    </details>
  );
}

function Putty(props: IConnectProps & { guide: IGuide }): JSX.Element {
  const { trans, guide } = props;
  return (
    <details>
      <summary>{trans.__('PuTTY, xshell, WinSCP')}</summary>
      <Values
        rows={[
          [trans.__('Host'), guide.host],
          [trans.__('Port'), guide.port],
          [trans.__('Username'), guide.user],
          [trans.__('Host key'), guide.fingerprint]
        ]}
      />
    </details>
  );
}

function Finding(props: { finding: IFinding }): JSX.Element {
  const { blocking, texts } = props.finding;
  const language = document.documentElement.lang;
  const { what, remedy } = inLocale(texts, language) ?? texts.en;
  return (
    <div className="jp-pai-Note" data-kind={blocking ? 'problem' : 'warning'}>
      <strong>{what}</strong>
      <span>{remedy}</span>
    </div>
  );
}

function Verdicts(props: {
  trans: TranslationBundle;
  report: IDoctorReport;
}): JSX.Element {
  const { trans, report } = props;
  return (
    <ul
      className="jp-pai-Connect-verdicts"
      aria-label={trans.__('Which programs will work')}
    >
      {report.clients.map(({ client, name, works, findings }) => (
        <li data-client={client} data-works={works} key={client}>
          <span>{name}</span>{' '}
          <strong>
            {works ? trans.__('will work') : trans.__('will not work')}
          </strong>
          {findings.map(finding => (
            <Finding finding={finding} key={finding.code} />
          ))}
        </li>
      ))}
    </ul>
  );
}

/** On what terms another's job may be entered. */
function Share(props: IConnectProps & { guide: IGuide }): JSX.Element | null {
  const { trans, guide } = props;
  if (guide.sharedBy === null) {
    return null;
  }
  const terms = [
    trans.__('Shared by %1', guide.sharedBy),
    untilWords(trans, guide.until),
    allowedWords(trans, guide.only)
  ];
  return (
    <div className="jp-pai-Note" data-kind="warning" role="note">
      <strong>{terms.join(' · ')}</strong>
      {guide.only.length > 0 && (
        <span>
          {trans.__('Editors and PyCharm need more than this share allows.')}
        </span>
      )}
    </div>
  );
}

/** Everything about reaching a job. */
export function Connect(props: IConnectProps): JSX.Element {
  const { model, trans } = props;
  const { guide, report, examining, problem } = model.state;
  return (
    <div className="jp-pai-Connect">
      {problem && <ProblemBox trans={trans} problem={problem} />}
      {!guide && !problem && <p>{trans.__('Loading…')}</p>}
      {guide && (
        <>
          <Share {...props} guide={guide} />
          <Ssh {...props} guide={guide} />
          {guide.only.length === 0 && (
            <>
              <Editors {...props} guide={guide} />
              <PyCharm {...props} guide={guide} />
            </>
          )}
          <Putty {...props} guide={guide} />
          <PrivateKey {...props} />
          <Programs {...props} guide={guide} />
        </>
      )}
      <Shares {...props} />
      <section aria-label={trans.__('Doctor')}>
        <button
          className="jp-mod-styled"
          disabled={examining}
          onClick={() => void model.examine()}
        >
          {examining
            ? trans.__('Trying…')
            : trans.__('Check which programs will work')}
        </button>
        {report && <Verdicts trans={trans} report={report} />}
      </section>
    </div>
  );
}
