/**
 * What narrows the table of jobs.
 */

import { InputDialog } from '@jupyterlab/apputils';
import { HTMLSelect, UseSignal } from '@jupyterlab/ui-components';
import { Debouncer } from '@lumino/polling';
import * as React from 'react';
import { reportProblem } from '../feedback';
import type { JobState } from '../types';
import { stateWord } from '../words';
import type { ITableProps } from './table';
import { FIRST_QUERY, typesOf } from './table_model';

/** Typing rests this long before jobs are asked for, in milliseconds. */
const REST = 300;

/** What a field of the query is typed into. */
function TextFilter(props: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}): JSX.Element {
  const { label, onChange } = props;
  const [value, setValue] = React.useState(props.value);
  const [given, setGiven] = React.useState(props.value);
  if (given !== props.value) {
    // Another query was chosen; what is being typed comes back here as it is.
    setGiven(props.value);
    setValue(props.value);
  }
  const change = React.useRef(onChange);
  change.current = onChange;
  const rest = React.useMemo(
    () =>
      new Debouncer<void, unknown, [string]>(
        word => change.current(word),
        REST
      ),
    []
  );
  React.useEffect(() => () => rest.dispose(), [rest]);
  return (
    <input
      aria-label={label}
      className="jp-mod-styled"
      onChange={event => {
        setValue(event.target.value);
        void rest.invoke(event.target.value.trim());
      }}
      placeholder={label}
      type="search"
      value={value}
    />
  );
}

const STATES: readonly JobState[] = [
  'RUNNING',
  'WAITING',
  'STOPPING',
  'SUCCEEDED',
  'FAILED',
  'STOPPED'
];

/** What narrows the table, and the queries that were given names. */
export function Filters(props: ITableProps): JSX.Element {
  const { model, trans } = props;
  const { query } = model.state;
  const text = (
    field: 'keyword' | 'username' | 'vc' | 'tag',
    label: string
  ): JSX.Element => (
    <TextFilter
      label={label}
      onChange={value => void model.ask({ [field]: value })}
      value={query[field]}
    />
  );
  return (
    <div className="jp-pai-JobTable-bar" role="search">
      {text('keyword', trans.__('Filter jobs by name'))}
      <HTMLSelect
        aria-label={trans.__('State')}
        onChange={event => {
          const state = event.target.value;
          void model.ask({ states: state ? state.split(',') : [] });
        }}
        options={[
          { value: '', label: trans.__('All states') },
          { value: 'RUNNING,WAITING,STOPPING', label: trans.__('Active') },
          ...STATES.map(value => ({ value, label: stateWord(trans, value) }))
        ]}
        value={query.states.join(',')}
      />
      {text('username', trans.__('User'))}
      {text('vc', trans.__('Virtual cluster'))}
      <HTMLSelect
        aria-label={trans.__('GPU type')}
        onChange={event => {
          void model.ask({ gpuType: event.target.value });
        }}
        options={[
          { value: '', label: trans.__('All GPU types') },
          ...typesOf(model.state).map(value => ({ value, label: value }))
        ]}
        value={query.gpuType}
      />
      {text('tag', trans.__('Tag'))}
      <HTMLSelect
        aria-label={trans.__('Submitted')}
        onChange={event => {
          void model.ask({ days: Number(event.target.value) });
        }}
        options={[
          { value: 0, label: trans.__('Any time') },
          { value: 1, label: trans.__('Today') },
          { value: 7, label: trans.__('Last 7 days') },
          { value: 30, label: trans.__('Last 30 days') }
        ]}
        value={query.days}
      />
      <UseSignal signal={props.views.changed}>
        {() => <Views {...props} />}
      </UseSignal>
    </div>
  );
}

/** Ask for a name and keep the query under it. */
async function saveView({ model, views, trans }: ITableProps): Promise<void> {
  const { value: name } = await InputDialog.getText({
    title: trans.__('Save the view'),
    label: trans.__('Name')
  });
  if (name) {
    await views.save(name, model.state.query);
  }
}

/** The queries that were given names: chosen, saved, forgotten. */
function Views(props: ITableProps): JSX.Element {
  const { model, views, trans } = props;
  const now = JSON.stringify(model.state.query);
  const chosen = views.all.find(({ query }) => JSON.stringify(query) === now);
  const say = (reason: unknown) => reportProblem(trans, reason);
  return (
    <>
      <HTMLSelect
        aria-label={trans.__('Saved view')}
        onChange={event => {
          const name = event.target.value;
          const view = views.all.find(each => each.name === name);
          void model.ask(view?.query ?? FIRST_QUERY);
        }}
        options={[
          { value: '', label: trans.__('No saved view') },
          ...views.all.map(({ name }) => ({ value: name, label: name }))
        ]}
        value={chosen?.name ?? ''}
      />
      {chosen ? (
        <button
          className="jp-mod-styled"
          onClick={() => void views.remove(chosen.name).catch(say)}
        >
          {trans.__('Forget this view')}
        </button>
      ) : (
        <button
          className="jp-mod-styled"
          onClick={() => void saveView(props).catch(say)}
        >
          {trans.__('Save view…')}
        </button>
      )}
    </>
  );
}
