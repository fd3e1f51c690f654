/**
 * Use by day, as bars of which each part is a row, and as a table of the same numbers.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { PlotFrame } from '../plot_frame';
import type { IUsageState } from './model';
import type { ISeries } from './series';
import { seriesOf } from './series';
import { amountText, amountWithUnit, measureWord, nameWord } from './words';

/** Size of the drawing in its own units. */
const WIDTH = 600;
const HEIGHT = 160;
/** Of the room of a day its bar takes this share. */
const FILLED = 0.8;

interface IBarsProps {
  readonly state: IUsageState;
  readonly trans: TranslationBundle;
}

interface IDrawn {
  readonly days: readonly string[];
  readonly series: readonly ISeries[];
  /** Names of the series, as they are shown. */
  readonly names: readonly string[];
  /** Of each day all together. */
  readonly sums: readonly number[];
  readonly most: number;
}

function drawnOf({ state, trans }: IBarsProps): IDrawn {
  const { days, series } = seriesOf(state);
  const names = series.map(({ name }) =>
    name === null ? trans.__('Others') : nameWord(trans, state.shownBy, name)
  );
  const sums = days.map((_, n) =>
    series.reduce((sum, each) => sum + (each.values[n] ?? 0), 0)
  );
  return { days, series, names, sums, most: Math.max(0, ...sums) };
}

/** The bars: of each day its parts, one upon the other. */
function Bars({ days, series, most }: IDrawn): JSX.Element {
  const step = WIDTH / days.length;
  return (
    <>
      {days.map((day, n) => {
        let top = HEIGHT;
        return series.map(({ name, values }, place) => {
          const height = ((values[n] ?? 0) / most) * HEIGHT;
          top -= height;
          return height > 0 ? (
            <rect
              data-series={name === null ? 'others' : place}
              height={height.toFixed(2)}
              key={`${day} ${place}`}
              width={(step * FILLED).toFixed(2)}
              x={(n * step + (step * (1 - FILLED)) / 2).toFixed(2)}
              y={top.toFixed(2)}
            />
          ) : null;
        });
      })}
    </>
  );
}

/** All numbers of the plot, for those who rather read than look. */
function Numbers(props: IBarsProps & { drawn: IDrawn }): JSX.Element {
  const { state, trans, drawn } = props;
  const { days, series, names, sums } = drawn;
  const { measure } = state;
  const [isOpen, setOpen] = React.useState(false);
  const hasParts = series.length > 1;
  return (
    <details
      className="jp-pai-Metrics-numbers"
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>{trans.__('Numbers by day')}</summary>
      {isOpen && (
        <div aria-label={trans.__('Numbers by day')} role="group" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">{trans.__('Day')}</th>
                <th data-numeric scope="col">
                  {measureWord(trans, measure)}
                </th>
                {hasParts &&
                  names.map((name, place) => (
                    <th data-numeric key={place} scope="col">
                      {name}
                    </th>
                  ))}
              </tr>
            </thead>
            <tbody>
              {days.map((day, n) => (
                <tr key={day}>
                  <th scope="row">{day}</th>
                  <td data-numeric>{amountText(measure, sums[n])}</td>
                  {hasParts &&
                    series.map(({ values }, place) => (
                      <td data-numeric key={place}>
                        {amountText(measure, values[n] ?? 0)}
                      </td>
                    ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}

/** Which colour is which part. */
function Legend({ drawn }: { drawn: IDrawn }): JSX.Element {
  const { series, names } = drawn;
  return (
    <ul className="jp-pai-Usage-legend">
      {series.map(({ name }, place) => (
        <li key={place}>
          <svg aria-hidden="true" viewBox="0 0 10 10">
            <rect
              data-series={name === null ? 'others' : place}
              height="10"
              width="10"
            />
          </svg>
          {names[place]}
        </li>
      ))}
    </ul>
  );
}

/** The plot of what was chosen, its legend, and its numbers. */
export function UsageBars(props: IBarsProps): JSX.Element {
  const { state, trans } = props;
  const { measure, usage } = state;
  const drawn = drawnOf(props);
  const { days, series, names, sums, most } = drawn;
  const text = (amount: number) =>
    amountWithUnit(trans, measure, amount, usage?.currency ?? null);
  const told = (n: number): string => {
    if (n < 0) {
      return '';
    }
    const parts = series
      .map(({ values }, place) => ({ at: values[n] ?? 0, place }))
      .filter(({ at }) => at > 0 && series.length > 1)
      .map(({ at, place }) => `${names[place]} ${amountText(measure, at)}`);
    const whole = `${days[n]}: ${text(sums[n])}`;
    return parts.length > 0 ? `${whole} (${parts.join(', ')})` : whole;
  };
  return (
    <div className="jp-pai-Usage-plot">
      <PlotFrame
        count={days.length}
        from={days[0] ?? ''}
        height={HEIGHT}
        label={trans.__('%1 by day', measureWord(trans, measure))}
        most={text(most)}
        nearest={share =>
          Math.min(
            days.length - 1,
            Math.max(0, Math.floor(share * days.length))
          )
        }
        shareOf={place => (place + 0.5) / days.length}
        told={told}
        until={days[days.length - 1] ?? ''}
        width={WIDTH}
      >
        {most > 0 && <Bars {...drawn} />}
      </PlotFrame>
      {series.length > 1 && <Legend drawn={drawn} />}
      <Numbers {...props} drawn={drawn} />
    </div>
  );
}
