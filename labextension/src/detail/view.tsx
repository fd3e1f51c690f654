/**
 * A job's page: what it is and does, its tasks and addresses, its output.
 */

import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { ITranslator } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { Panel } from '@lumino/widgets';
import * as React from 'react';
import { ModelView, ProblemBox } from '../components';
import { paiIcon } from '../icons';
import { LogView } from '../log/view';
import { NotebookTab } from '../notebooks/run';
import { Tabs } from '../tabs';
import { CommandIDs, DOMAIN } from '../tokens';
import { LogColumns } from './beside';
import { DocumentTab } from './document';
import { History } from './history';
import { MetricsTab } from './metrics';
import { LogBar } from './log_bar';
import type { DetailModel, DetailTab } from './model';
import type { IPageProps } from './overview';
import { Overview, Title } from './overview';
import { WhyTab } from './why';

/** What the head of the page shows: the job, what can be done with it, and the tabs. */
function JobHead(props: IPageProps): JSX.Element {
  const { model, trans } = props;
  const { job, problem, tab } = model.state;
  if (!job) {
    return problem ? (
      <ProblemBox trans={trans} problem={problem} />
    ) : (
      <p>{trans.__('Loading…')}</p>
    );
  }
  return (
    <>
      <Title {...props} job={job} />
      <Tabs<DetailTab>
        label={trans.__('Parts of the page')}
        onSelect={id => model.showTab(id)}
        panel={panelId(model)}
        selected={tab}
        tabs={[
          { id: 'overview', label: trans.__('Overview') },
          { id: 'metrics', label: trans.__('Metrics') },
          ...(job.notebook
            ? [{ id: 'notebook' as const, label: trans.__('Notebook') }]
            : []),
          { id: 'history', label: trans.__('History') },
          { id: 'logs', label: trans.__('Logs') },
          { id: 'document', label: trans.__('Document') },
          { id: 'why', label: trans.__('Why') }
        ]}
      />
    </>
  );
}

/** The shown part of the page as a function of the model's state; the log is a widget of its own. */
function JobTab(props: IPageProps): JSX.Element {
  const { model, commands, trans } = props;
  const { job, why, tab, attempts, timeline, metrics, span } = model.state;
  if (!job) {
    return <></>;
  }
  switch (tab) {
    case 'overview':
      return (
        <Overview {...props} job={job} onWhy={() => model.showTab('why')} />
      );
    case 'notebook':
      return (
        <NotebookTab
          job={job}
          onOpen={() =>
            void commands.execute(CommandIDs.openNotebook, { job: job.id })
          }
          run={model.state.notebook}
          trans={trans}
        />
      );
    case 'history':
      return (
        <History
          attempts={attempts}
          onLog={target => model.showLog(target)}
          timeline={timeline}
          trans={trans}
        />
      );
    case 'metrics':
      return (
        <MetricsTab
          metrics={metrics}
          onSpan={seconds => model.showSpan(seconds)}
          span={span}
          trans={trans}
        />
      );
    case 'document':
      return <DocumentTab model={model} trans={trans} />;
    case 'why':
      return (
        <WhyTab
          job={job}
          onQueue={() => void commands.execute(CommandIDs.showCluster)}
          trans={trans}
          why={why}
        />
      );
    default:
      return <></>;
  }
}

/** The DOM id of the part of a page that its tabs exchange. */
function panelId(model: DetailModel): string {
  return `jp-pai-part-${model.name}`;
}

/** The page of one job. It owns the model. */
export class JobPage extends Panel {
  constructor(options: JobPage.IOptions) {
    super();
    const { model, commands, translator, rendermime } = options;
    const trans = translator.load(DOMAIN);
    const props = { model, commands, trans };
    this.model = model;
    this.addClass('jp-pai-JobPage');
    this.title.icon = paiIcon;
    this.title.closable = true;
    const head = new ModelView(JobHead, props);
    head.addClass('jp-pai-Detail-head');
    this._part = new ModelView(JobTab, props);
    this._part.addClass('jp-pai-Detail');
    this._log = new LogView(rendermime, trans);
    const columns = new LogColumns(this._log, model, rendermime, trans);
    const bar = new ModelView(
      (shown: IPageProps) => (
        <LogBar
          {...shown}
          onBeside={(role, index) => columns.add(role, index)}
          onTimed={timed => {
            columns.timed = timed;
          }}
          onWrap={wrap => {
            columns.wrap = wrap;
          }}
        />
      ),
      props
    );
    bar.addClass('jp-pai-Detail-logbar');
    this._output = new Panel();
    this._output.addClass('jp-pai-JobPage-output');
    this._output.addWidget(bar);
    this._output.addWidget(columns);
    const parts = new Panel();
    parts.addClass('jp-pai-JobPage-parts');
    parts.node.id = panelId(model);
    parts.node.setAttribute('role', 'tabpanel');
    parts.addWidget(this._part);
    parts.addWidget(this._output);
    this._parts = parts;
    this.addWidget(head);
    this.addWidget(parts);
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
    const { job, log, tab } = this.model.state;
    this.title.label = job?.name ?? this.model.name;
    if (this._log.model !== log) {
      this._log.model = log;
    }
    // Below a head that is not there yet they would move when it comes.
    this._parts.setHidden(job === null);
    this._part.setHidden(tab === 'logs');
    this._output.setHidden(tab !== 'logs');
    const labelled = `${panelId(this.model)}-${tab}`;
    this._parts.node.setAttribute('aria-labelledby', labelled);
  }

  private readonly _log: LogView;
  private readonly _output: Panel;
  private readonly _part: ModelView<IPageProps>;
  private readonly _parts: Panel;
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
