/**
 * The page of the cluster: of each virtual cluster what it owns, who runs there and who waits; and the nodes.
 */

import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import { clusterIcon } from '../icons';
import { JobLink, ModelView, ProblemBox } from '../components';
import { CommandIDs, DOMAIN } from '../tokens';
import type {
  IClusterUse,
  IReservationList,
  IRunningJob,
  IVirtualClusterUse
} from '../types';
import { CellsTable } from './cells';
import type { ClusterModel } from './model';
import { NodesSection } from './nodes';
import { OrphansSection } from './orphans';
import type { IUseProps } from './queue';
import { ReservationsPart } from './reservations';
import { QueueTable } from './queue';
import { liveWord } from '../words';

/** What the page needs. */
interface IPageProps {
  readonly model: ClusterModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

function runningText(trans: TranslationBundle, job: IRunningJob): string {
  const facts = [
    trans._n('%1 task', '%1 tasks', job.tasks),
    trans._n('%1 GPU', '%1 GPUs', job.gpus)
  ];
  if (job.opportunistic) {
    facts.push(trans.__('opportunistic'));
  }
  return facts.join(' · ');
}

function RunningList(
  props: IUseProps & { use: IVirtualClusterUse }
): JSX.Element {
  const { trans, use, admin } = props;
  const { running, unlistedJobs, unlistedGpus } = use;
  if (running.length === 0 && unlistedJobs === 0) {
    return <p>{trans.__('Nothing runs here.')}</p>;
  }
  return (
    <ul aria-label={trans.__('Running in %1', use.name)}>
      {running.map(job => (
        <li key={job.uid}>
          <JobLink {...props} job={job} />
          <span>
            {admin && `${job.username} · `}
            {runningText(trans, job)}
          </span>
        </li>
      ))}
      {unlistedJobs > 0 && (
        <li>
          {trans.__(
            'and %1 with %2',
            trans._n('%1 other job', '%1 other jobs', unlistedJobs),
            trans._n('%1 GPU', '%1 GPUs', unlistedGpus)
          )}
        </li>
      )}
    </ul>
  );
}

function WaitingPart(
  props: IUseProps & { use: IVirtualClusterUse }
): JSX.Element {
  const { trans, use, admin } = props;
  if (use.waiting === 0) {
    return <p>{trans.__('No job is waiting.')}</p>;
  }
  const hidden = use.waiting - use.queue.length;
  return (
    <>
      {use.queue.length > 0 && <QueueTable {...props} />}
      {hidden > 0 && (
        <p>
          {admin
            ? trans._n('%1 more job waits.', '%1 more jobs wait.', hidden)
            : trans._n(
                '%1 job of others waits.',
                '%1 jobs of others wait.',
                hidden
              )}
        </p>
      )}
    </>
  );
}

function VirtualClusterSection(
  props: IUseProps & {
    use: IVirtualClusterUse;
    shared: boolean;
    reservations: IReservationList;
  }
): JSX.Element {
  const { trans, use, shared } = props;
  const id = `jp-pai-cluster-${use.name}`;
  return (
    <section aria-labelledby={id} data-vc={use.name}>
      <h3 id={id}>{use.name}</h3>
      {use.granted && (
        <button
          aria-label={trans.__('Rules of %1', use.name)}
          className="jp-mod-styled"
          onClick={() =>
            void props.commands.execute(CommandIDs.vcRules, { vc: use.name })
          }
        >
          {trans.__('Rules…')}
        </button>
      )}
      {!use.granted && <p>{trans.__('You are not allowed to use it.')}</p>}
      {use.cells.length > 0 && (
        <CellsTable
          cells={use.cells}
          name={use.name}
          shared={shared}
          trans={trans}
        />
      )}
      <ReservationsPart {...props} vc={use.name} />
      <h4>{trans.__('Running')}</h4>
      <RunningList {...props} />
      <h4>{trans.__('Waiting')}</h4>
      <WaitingPart {...props} />
    </section>
  );
}

/** What is said of the cluster as a whole. */
function Kind(props: {
  trans: TranslationBundle;
  use: IClusterUse;
}): JSX.Element {
  const { trans, use } = props;
  const without = use.virtualClusters.every(each => each.cells.length === 0);
  if (without) {
    return (
      <p>
        {trans.__(
          'There are no GPUs here: jobs share the CPUs and the memory of the nodes.'
        )}
      </p>
    );
  }
  return use.shared ? (
    <p>
      {trans.__(
        'No quotas are set: every virtual cluster may use all free resources.'
      )}
    </p>
  ) : (
    <></>
  );
}

/** The page as a function of the model's state. */
export function ClusterUse(props: IPageProps): JSX.Element {
  const { model, commands, trans } = props;
  const { use, orphans, reservations, live, problem } = model.state;
  return (
    <>
      <header>
        <h2>{trans.__('Cluster')}</h2>
        <span data-live={live} role="status">
          {use && liveWord(trans, live && !problem)}
        </span>
      </header>
      {problem && <ProblemBox problem={problem} trans={trans} />}
      {!use && !problem && <p>{trans.__('Loading…')}</p>}
      {use && (
        <>
          <Kind trans={trans} use={use} />
          {use.virtualClusters.map(each => (
            <VirtualClusterSection
              admin={use.admin}
              commands={commands}
              key={each.name}
              reservations={reservations}
              shared={use.shared}
              trans={trans}
              use={each}
            />
          ))}
          <OrphansSection commands={commands} orphans={orphans} trans={trans} />
          <NodesSection nodes={use.nodes} trans={trans} />
        </>
      )}
    </>
  );
}

/** The page. The model outlives it. */
export class ClusterPage extends ModelView<IPageProps> {
  constructor(options: ClusterPage.IOptions) {
    const { model, commands, translator } = options;
    const trans = translator.load(DOMAIN);
    super(ClusterUse, { model, commands, trans });
    this._model = model;
    this.addClass('jp-pai-Cluster');
    this.title.icon = clusterIcon;
    this.title.label = trans.__('Cluster');
    this.title.closable = true;
    // Reached by the keyboard, so that it can be scrolled.
    this.node.tabIndex = 0;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Cluster'));
  }

  /** What was missed while it was not looked at is read at once. */
  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    void this._model.refresh();
  }

  private readonly _model: ClusterModel;
}

/** Options of {@link ClusterPage}. */
export namespace ClusterPage {
  /** What the page is made from. */
  export interface IOptions {
    readonly model: ClusterModel;
    readonly commands: CommandRegistry;
    readonly translator: ITranslator;
  }
}
