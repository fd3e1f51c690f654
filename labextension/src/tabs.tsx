/**
 * A strip of tabs as the ARIA authoring practices describe it: arrow keys, Home and End select.
 */

import * as React from 'react';

/** A tab and what it is called. */
export interface ITab<T extends string> {
  readonly id: T;
  readonly label: string;
}

/** The tab that a key leads to; null for another key. */
function nextPlace(key: string, place: number, count: number): number | null {
  switch (key) {
    case 'ArrowLeft':
      return (place + count - 1) % count;
    case 'ArrowRight':
      return (place + 1) % count;
    case 'Home':
      return 0;
    case 'End':
      return count - 1;
    default:
      return null;
  }
}

/** The strip; `panel` is the DOM id of the panel that all of its tabs share. */
export function Tabs<T extends string>(props: {
  label: string;
  panel: string;
  tabs: readonly ITab<T>[];
  selected: T;
  onSelect: (id: T) => void;
}): JSX.Element {
  const { label, panel, tabs, selected, onSelect } = props;
  return (
    <div aria-label={label} className="jp-pai-Tabs" role="tablist">
      {tabs.map(({ id, label: name }, place) => (
        <button
          aria-controls={panel}
          aria-selected={id === selected}
          id={`${panel}-${id}`}
          key={id}
          onClick={() => onSelect(id)}
          onKeyDown={event => {
            const next = nextPlace(event.key, place, tabs.length);
            if (next !== null) {
              event.preventDefault();
              onSelect(tabs[next].id);
              const strip = event.currentTarget.parentElement?.children;
              (strip?.[next] as HTMLElement | undefined)?.focus();
            }
          }}
          role="tab"
          tabIndex={id === selected ? 0 : -1}
          type="button"
        >
          {name}
        </button>
      ))}
    </div>
  );
}
