/**
 * A small plot of a value over time, which keys and screen readers can read.
 */

import * as React from 'react';
import { PlotFrame } from '../plot_frame';

/** A value at a time, in milliseconds; null where it is not known. */
export interface IPoint {
  readonly at: number;
  readonly value: number | null;
}

/** Size of the drawing in its own units; it is stretched to the room there is. */
const WIDTH = 600;
const HEIGHT = 100;

/** A pause longer than so many usual ones is a gap: nothing was measured there. */
const GAP = 3;

/** The usual time between two points. */
function usualStep(points: readonly IPoint[]): number {
  const steps = points.slice(1).map((point, n) => point.at - points[n].at);
  return steps.sort((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
}

/** The points in pieces without a gap. */
export function pieces(points: readonly IPoint[]): IPoint[][] {
  const step = usualStep(points);
  const found: IPoint[][] = [];
  let last = -Infinity;
  for (const point of points) {
    if (point.value === null) {
      last = -Infinity;
      continue;
    }
    if (point.at - last > GAP * step) {
      found.push([]);
    }
    found[found.length - 1].push(point);
    last = point.at;
  }
  return found;
}

/** What a plot needs. */
export interface IPlotProps {
  readonly label: string;
  readonly points: readonly IPoint[];
  /** The value at the top. */
  readonly most: number;
  /** A value in words. */
  readonly words: (value: number | null) => string;
  /** A time in words. */
  readonly time: (at: number) => string;
  readonly from: number;
  readonly until: number;
}

/** The lines of a plot. */
function Lines(props: IPlotProps): JSX.Element {
  const { points, most, from, until } = props;
  const x = (at: number) => ((at - from) / (until - from)) * WIDTH;
  const y = (value: number) => HEIGHT - (Math.min(value, most) / most) * HEIGHT;
  return (
    <>
      {pieces(points).map(piece => {
        const line = piece
          .map(
            ({ at, value }) => `${x(at).toFixed(1)},${y(value ?? 0).toFixed(1)}`
          )
          .join(' ');
        const [first, last] = [x(piece[0].at), x(piece[piece.length - 1].at)];
        return (
          <React.Fragment key={piece[0].at}>
            <polygon points={`${first},${HEIGHT} ${line} ${last},${HEIGHT}`} />
            <polyline points={line} />
          </React.Fragment>
        );
      })}
    </>
  );
}

/** A value over time. Arrow keys, Home and End read it point by point. */
export function Plot(props: IPlotProps): JSX.Element {
  const { label, points, words, time, most, from, until } = props;
  const nearest = (share: number): number => {
    const wanted = from + share * (until - from);
    const away = (n: number) => Math.abs(points[n].at - wanted);
    return points.reduce((best, _, n) => (away(n) < away(best) ? n : best), 0);
  };
  return (
    <PlotFrame
      count={points.length}
      from={time(from)}
      height={HEIGHT}
      label={label}
      most={words(most)}
      nearest={nearest}
      shareOf={place => (points[place].at - from) / (until - from)}
      told={place =>
        place < 0
          ? words(null)
          : `${words(points[place].value)}, ${time(points[place].at)}`
      }
      until={time(until)}
      width={WIDTH}
    >
      <Lines {...props} />
    </PlotFrame>
  );
}
