/**
 * What the user chooses: the time, by what use is told apart, and what is plotted.
 */

import * as React from 'react';
import type { By } from './model';
import { measuresOf } from './model';
import type { RangeName } from './range';
import type { IPageProps } from './view';
import { byWord, measureWord } from './words';

const BY: readonly By[] = ['user', 'group', 'vc', 'type', 'day'];

function Choice<T extends string>(props: {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  choose: (value: T) => void;
}): JSX.Element {
  const { label, value, options, choose } = props;
  return (
    <label>
      <span>{label}</span>
      <div className="jp-select-wrapper">
        <select
          aria-label={label}
          className="jp-mod-styled"
          onChange={event => choose(event.target.value as T)}
          value={value}
        >
          {options.map(([name, word]) => (
            <option key={name} value={name}>
              {word}
            </option>
          ))}
        </select>
      </div>
    </label>
  );
}

function Day(props: {
  label: string;
  value: string;
  choose: (value: string) => void;
}): JSX.Element {
  const { label, value, choose } = props;
  return (
    <label>
      <span>{label}</span>
      <input
        className="jp-mod-styled"
        onChange={event => choose(event.target.value)}
        type="date"
        value={value}
      />
    </label>
  );
}

/** The controls above the plot. */
export function Choices({ model, trans }: IPageProps): JSX.Element {
  const { choice, measure, usage } = model.state;
  const ranges: readonly (readonly [RangeName, string])[] = [
    ['week', trans.__('This week')],
    ['month', trans.__('This month')],
    ['last-month', trans.__('Last month')],
    ['quarter', trans.__('Last 90 days')],
    ['own', trans.__('Days of your choice')]
  ];
  const measures = measuresOf(usage);
  return (
    <div className="jp-pai-Usage-choices">
      <Choice
        choose={range => void model.choose({ range })}
        label={trans.__('Time')}
        options={ranges}
        value={choice.range}
      />
      {choice.range === 'own' && (
        <>
          <Day
            choose={first => void model.choose({ first })}
            label={trans.__('First day')}
            value={choice.first}
          />
          <Day
            choose={last => void model.choose({ last })}
            label={trans.__('Last day')}
            value={choice.last}
          />
        </>
      )}
      <Choice
        choose={by => void model.choose({ by })}
        label={trans.__('By')}
        options={BY.map(by => [by, byWord(trans, by)] as const)}
        value={choice.by}
      />
      <Choice
        choose={each => model.show(each)}
        label={trans.__('Plot')}
        options={measures.map(
          each => [each, measureWord(trans, each)] as const
        )}
        value={measure}
      />
    </div>
  );
}
