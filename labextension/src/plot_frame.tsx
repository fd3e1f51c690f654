/**
 * What plots have in common: a caption, a place that keys, the pointer and screen readers read, and the ends of the time.
 */

import * as React from 'react';

/** What the frame needs. Places are numbers from 0 on, shares are between 0 and 1 from left to right. */
export interface IFrameProps {
  readonly label: string;
  /** How many places there are. */
  readonly count: number;
  /** A place in words; of -1 where there is none. */
  readonly told: (place: number) => string;
  readonly shareOf: (place: number) => number;
  readonly nearest: (share: number) => number;
  /** The value at the top. */
  readonly most: string;
  readonly from: string;
  readonly until: string;
  /** Size of the drawing in its own units; it is stretched to the room there is. */
  readonly width: number;
  readonly height: number;
}

/** The place that a key leads to. */
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

/** The frame around a drawing. Arrow keys, Home and End read it place by place. */
export function PlotFrame(
  props: React.PropsWithChildren<IFrameProps>
): JSX.Element {
  const { label, count, width, height, children } = props;
  const last = count - 1;
  const [chosen, setChosen] = React.useState<number | null>(null);
  const place = Math.min(chosen ?? last, last);
  const told = props.told(place);
  const point = (event: React.PointerEvent<HTMLDivElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    setChosen(props.nearest((event.clientX - box.left) / box.width));
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
          viewBox={`0 0 ${width} ${height}`}
        >
          {children}
        </svg>
        {chosen !== null && last >= 0 && (
          <div
            className="jp-pai-Plot-cursor"
            style={{ left: `${props.shareOf(place) * 100}%` }}
          />
        )}
        <span className="jp-pai-Plot-most">{props.most}</span>
      </div>
      <div className="jp-pai-Plot-times">
        <span>{props.from}</span>
        <span>{props.until}</span>
      </div>
    </figure>
  );
}
