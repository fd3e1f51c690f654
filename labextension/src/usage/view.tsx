/**
 * The page of usage: what was used when and by whom, what it cost, and what of the budgets is left.
 */

import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import { ModelView, ProblemBox } from '../components';
import { usageIcon } from '../icons';
import { saveText } from '../saving';
import { DOMAIN } from '../tokens';
import type { IUsage } from '../types';
import { UsageBars } from './bars';
import { Choices } from './choices';
import { csvOf } from './csv';
import type { UsageModel } from './model';
import { sortedRows } from './model';
import { BudgetsSection, UsageTable } from './tables';
import { amountWithUnit, lastDay } from './words';

/** What the parts of the page need. */
export interface IPageProps {
  readonly model: UsageModel;
  readonly trans: TranslationBundle;
}

/** The time and all that was used in it, in a sentence. */
function wholeText(trans: TranslationBundle, usage: IUsage): string {
  const { since, until, currency, total } = usage;
  const amounts = [
    amountWithUnit(trans, 'gpu', total.gpuHours, null),
    amountWithUnit(trans, 'cpu', total.cpuHours, null)
  ];
  if (currency !== null) {
    amounts.push(
      amountWithUnit(trans, 'cost', Number(total.cost ?? 0), currency)
    );
  }
  const days = trans.__('%1 to %2', since.slice(0, 10), lastDay(until));
  return trans.__('%1 (UTC). Together %2.', days, amounts.join(' · '));
}

function Found(props: IPageProps & { usage: IUsage }): JSX.Element {
  const { model, trans, usage } = props;
  const { shownBy } = model.state;
  if (usage.data.length === 0) {
    return <p>{trans.__('Nothing was held in that time.')}</p>;
  }
  return (
    <>
      {shownBy === 'group' && (
        <p>
          {trans.__(
            'Groups are those of today. The hours of users in several groups count in each.'
          )}
        </p>
      )}
      <UsageBars state={model.state} trans={trans} />
      <UsageTable {...props} key={shownBy} />
    </>
  );
}

/** The page as a function of the model's state. */
export function UsageContent(props: IPageProps): JSX.Element {
  const { model, trans } = props;
  const { usage, shownBy, problem, isLoading } = model.state;
  const save = () => {
    if (usage) {
      const days = `${usage.since.slice(0, 10)}-${lastDay(usage.until)}`;
      const text = csvOf(usage, shownBy, sortedRows(model.state));
      saveText(`usage-${days}-${shownBy}.csv`, text, 'text/csv');
    }
  };
  return (
    <>
      <header>
        <h2>{trans.__('Usage')}</h2>
        <button
          aria-disabled={!usage?.data.length}
          className="jp-mod-styled"
          onClick={save}
        >
          {trans.__('Download CSV')}
        </button>
      </header>
      <Choices {...props} />
      {problem && <ProblemBox problem={problem} trans={trans} />}
      <p aria-busy={isLoading} role="status">
        {usage ? wholeText(trans, usage) : !problem && trans.__('Loading…')}
      </p>
      {usage && <Found {...props} usage={usage} />}
      <BudgetsSection {...props} />
    </>
  );
}

/** The page. The model outlives it. */
export class UsagePage extends ModelView<IPageProps> {
  constructor(options: UsagePage.IOptions) {
    const { model, translator } = options;
    const trans = translator.load(DOMAIN);
    super(UsageContent, { model, trans });
    this._model = model;
    this.addClass('jp-pai-Cluster');
    this.addClass('jp-pai-Usage');
    this.title.icon = usageIcon;
    this.title.label = trans.__('Usage');
    this.title.closable = true;
    // Reached by the keyboard, so that it can be scrolled.
    this.node.tabIndex = 0;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Usage'));
  }

  /** Jobs have gone on meanwhile. */
  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    void this._model.refresh();
  }

  private readonly _model: UsageModel;
}

/** Options of {@link UsagePage}. */
export namespace UsagePage {
  /** What the page is made from. */
  export interface IOptions {
    readonly model: UsageModel;
    readonly translator: ITranslator;
  }
}
