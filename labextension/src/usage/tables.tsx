/**
 * The tables of the page: what was used, and the budgets.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { IColumn } from '../cluster/table';
import { DataRow, DataTable } from '../cluster/table';
import type { IBudget } from '../types';
import type { Column } from './model';
import { amountOf, measuresOf, nameOf, sortedRows } from './model';
import type { IPageProps } from './view';
import {
  amountText,
  budgetAmounts,
  budgetOf,
  budgetShare,
  budgetTimes,
  byWord,
  measureWord,
  nameWord
} from './words';

/** Rows that are shown at first: more are slow to lay out. */
const ROWS = 200;

function head(props: IPageProps, id: Column, label: string): IColumn {
  const { model } = props;
  const { column, isDescending } = model.state;
  const order = isDescending ? 'descending' : 'ascending';
  const isSorted = column === id;
  return {
    label,
    numeric: id !== 'name',
    sort: isSorted ? order : 'none',
    head: (
      <button className="jp-pai-JobLink" onClick={() => model.orderBy(id)}>
        {label}
        {isSorted && (isDescending ? ' ▼' : ' ▲')}
      </button>
    )
  };
}

/** The rows of what was chosen. Their headings sort them. */
export function UsageTable(props: IPageProps): JSX.Element {
  const { model, trans } = props;
  const { usage, shownBy } = model.state;
  const [isWhole, setWhole] = React.useState(false);
  const measures = measuresOf(usage);
  const columns = [
    head(props, 'name', byWord(trans, shownBy)),
    ...measures.map(each => head(props, each, measureWord(trans, each))),
    head(props, 'runs', trans.__('Runs of tasks'))
  ];
  const rows = sortedRows(model.state);
  const shown = isWhole ? rows : rows.slice(0, ROWS);
  const hidden = rows.length - shown.length;
  return (
    <>
      <DataTable columns={columns} label={trans.__('Usage')}>
        {shown.map(row => {
          const name = nameOf(row, shownBy);
          const amounts = measures.map(each =>
            amountText(each, amountOf(row, each))
          );
          return (
            <DataRow
              cells={[nameWord(trans, shownBy, name), ...amounts, row.runs]}
              columns={columns}
              header={0}
              key={name}
            />
          );
        })}
      </DataTable>
      {hidden > 0 && (
        <button className="jp-mod-styled" onClick={() => setWhole(true)}>
          {trans._n('Show %1 other row', 'Show %1 other rows', hidden)}
        </button>
      )}
    </>
  );
}

function Share(props: {
  trans: TranslationBundle;
  budget: IBudget;
}): JSX.Element {
  const { trans, budget } = props;
  const share = budgetShare(budget);
  const text =
    budget.level === 'used-up'
      ? trans.__('used up')
      : `${Math.min(share, 99)} %`;
  return (
    <div className="jp-pai-Usage-share" data-level={budget.level}>
      <span aria-hidden="true" className="jp-pai-Cluster-bar">
        <span style={{ width: `${Math.min(100, share)}%` }} />
      </span>
      {text}
    </div>
  );
}

/** The budgets that concern the user, with what of each is used. */
export function BudgetsSection({ model, trans }: IPageProps): JSX.Element {
  const { budgets } = model.state;
  if (budgets.length === 0) {
    return <></>;
  }
  const columns = [
    { label: trans.__('Of') },
    { label: trans.__('Budget'), numeric: true },
    { label: trans.__('Used'), numeric: true },
    { label: trans.__('Share') },
    { label: trans.__('Counted') }
  ];
  return (
    <section aria-labelledby="jp-pai-usage-budgets">
      <h3 id="jp-pai-usage-budgets">{trans.__('Budgets')}</h3>
      <DataTable columns={columns} label={trans.__('Budgets')}>
        {budgets.map(each => {
          const { most, used } = budgetAmounts(trans, each);
          return (
            <DataRow
              cells={[
                budgetOf(trans, each),
                most,
                used,
                <Share budget={each} key="share" trans={trans} />,
                budgetTimes(trans, each)
              ]}
              columns={columns}
              header={0}
              key={each.id}
              troubled={each.level === 'used-up'}
            />
          );
        })}
      </DataTable>
    </section>
  );
}
