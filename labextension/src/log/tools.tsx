/**
 * What can be done with a log: go through it, look for lines, save it.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';
import { ProblemBox } from '../components';
import { liveWord } from '../words';
import type { LogModel } from './model';

const MIB = 1024 * 1024;

interface IToolsProps {
  readonly trans: TranslationBundle;
  readonly log: LogModel;
}

/** Reads what is looked for. */
function SearchForm(props: IToolsProps): JSX.Element {
  const { trans, log } = props;
  const [pattern, setPattern] = React.useState('');
  const [exact, setExact] = React.useState(false);
  return (
    <form
      onSubmit={event => {
        event.preventDefault();
        void log.search(pattern, !exact);
      }}
      role="search"
    >
      <input
        aria-label={trans.__('Regular expression to look for in the whole log')}
        className="jp-mod-styled"
        onChange={event => setPattern(event.target.value)}
        placeholder={trans.__('Regular expression')}
        type="search"
        value={pattern}
      />
      <label>
        <input
          checked={exact}
          onChange={event => setExact(event.target.checked)}
          type="checkbox"
        />
        {trans.__('Match case')}
      </label>
      <button className="jp-mod-styled" type="submit">
        {trans.__('Search')}
      </button>
    </form>
  );
}

/** What was found; each line leads to its place. */
function Found(props: IToolsProps): JSX.Element {
  const { trans, log } = props;
  const { search } = log.state;
  if (!search) {
    return <></>;
  }
  const { matches, searched, complete, problem } = search;
  const count = trans._n('%1 line', '%1 lines', matches.length);
  return (
    <div className="jp-pai-Log-found">
      {problem && <ProblemBox problem={problem} trans={trans} />}
      <span role="status">
        {complete
          ? count
          : trans.__(
              '%1 in the first %2 MiB, searching…',
              count,
              Math.floor(searched / MIB)
            )}
      </span>
      {matches.length > 0 && (
        <ul aria-label={trans.__('Lines found')}>
          {matches.map(match => (
            <li key={match.offset}>
              <button
                className="jp-pai-JobLink"
                onClick={() => void log.goTo(match.offset)}
              >
                {match.text || trans.__('(empty line)')}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Whether what is shown goes on by itself. */
export function stateWords(trans: TranslationBundle, log: LogModel): string {
  const { atEnd, complete, live } = log.state;
  if (!atEnd) {
    return trans.__('Not followed');
  }
  return complete ? trans.__('Complete') : liveWord(trans, live);
}

/** The tools of one log as a function of its state. */
export function LogTools(
  props: IToolsProps & {
    wrap: boolean;
    onWrap: (wrap: boolean) => void;
    onTimed: (timed: boolean) => void;
  }
): JSX.Element {
  const { trans, log, wrap, onWrap, onTimed } = props;
  return (
    <UseSignal signal={log.changed}>
      {() => (
        <>
          <span className="jp-pai-Detail-live" role="status">
            {stateWords(trans, log)}
          </span>
          {log.state.cut && (
            <button
              className="jp-mod-styled"
              onClick={() => void log.showEarlier()}
            >
              {trans.__('Earlier output')}
            </button>
          )}
          {!log.state.atEnd && (
            <>
              <button
                className="jp-mod-styled"
                onClick={() => void log.showLater()}
              >
                {trans.__('Later output')}
              </button>
              <button className="jp-mod-styled" onClick={() => log.showEnd()}>
                {trans.__('Go to the end')}
              </button>
            </>
          )}
          <label>
            <input
              checked={wrap}
              onChange={event => onWrap(event.target.checked)}
              type="checkbox"
            />
            {trans.__('Wrap lines')}
          </label>
          <label>
            <input
              checked={log.state.timed}
              onChange={event => onTimed(event.target.checked)}
              type="checkbox"
            />
            {trans.__('Times')}
          </label>
          <a className="jp-pai-JobLink" download href={log.url}>
            {trans.__('Download')}
          </a>
          <SearchForm {...props} />
          <Found {...props} />
        </>
      )}
    </UseSignal>
  );
}
