/**
 * A small plot of a value over time, which keys and screen readers can read.
 */

import * as React from 'react';

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

/** The place that a key or the pointer leads to. */
function placeAfter(key: string, place: number, last: number): number | null {
  const step = Math.max(1, Math.round(last / 10));
  const places: Record<string, number> = {
    ArrowLeft: place - 1,
    ArrowDown: place - 1,
    ArrowRight: place + 1,
    ArrowUp: place + 1,
    PageDown: place - step,
    PageUp: place + step,
    Home: 0,
    End: last
  };
  return key in places ? Math.min(last, Math.max(0, places[key])) : null;
}

/** A value over time. Arrow keys, Home and End read it point by point. */
export function Plot(props: IPlotProps): JSX.Element {
  const { label, points, words, time, most, from, until } = props;
  const last = points.length - 1;
  const [chosen, setChosen] = React.useState<number | null>(null);
  const place = Math.min(chosen ?? last, last);
  const at = points[place];
  const share = at ? ((at.at - from) / (until - from)) * 100 : 0;
  const told = at ? `${words(at.value)}, ${time(at.at)}` : words(null);
  const point = (event: React.PointerEvent<HTMLDivElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const wanted =
      from + ((event.clientX - box.left) / box.width) * (until - from);
    const away = (n: number) => Math.abs(points[n].at - wanted);
    setChosen(
      points.reduce((best, _, n) => (away(n) < away(best) ? n : best), 0)
    );
  };
  return (
    <figure className="jp-pai-Plot">
      <figcaption>
        <span>{label}</span>
        <output>{told}</output>
      </figcaption>
      <div
        aria-label={label}
        aria-valuemax={Math.max(last, 0)}
        aria-valuemin={0}
        aria-valuenow={Math.max(place, 0)}
        aria-valuetext={told}
        className="jp-pai-Plot-area"
        onKeyDown={event => {
          const next = placeAfter(event.key, place, last);
          if (next !== null && last >= 0) {
            event.preventDefault();
            setChosen(next);
          }
        }}
        onPointerLeave={() => setChosen(null)}
        onPointerMove={last >= 0 ? point : undefined}
        role="slider"
        tabIndex={0}
      >
        <svg
          aria-hidden="true"
          preserveAspectRatio="none"
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        >
          <Lines {...props} />
        </svg>
        {chosen !== null && at && (
          <div className="jp-pai-Plot-cursor" style={{ left: `${share}%` }} />
        )}
        <span className="jp-pai-Plot-most">{words(most)}</span>
      </div>
      <div className="jp-pai-Plot-times">
        <span>{time(from)}</span>
        <span>{time(until)}</span>
      </div>
    </figure>
  );
}
