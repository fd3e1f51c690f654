/**
 * The tabs of the form's pages.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { IFormSchema } from './schema';

/** The tabs of the pages; those with faults are marked. */
export const Pages = React.memo(
  (props: {
    trans: TranslationBundle;
    schema: IFormSchema;
    page: string;
    faulty: ReadonlySet<string | undefined>;
    show: (page: string) => void;
  }): JSX.Element => {
    const { trans, schema, page, faulty, show } = props;
    const pages = schema['x-sections'] ?? [];
    return (
      <div
        aria-label={trans.__('Pages of the form')}
        className="jp-pai-Form-pages"
        role="tablist"
      >
        {pages.map((each, place) => (
          <button
            aria-selected={each.id === page}
            data-faulty={faulty.has(each.id) || undefined}
            key={each.id}
            onClick={() => show(each.id)}
            onKeyDown={event => {
              const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0;
              const next = pages[place + by];
              if (by !== 0 && next) {
                show(next.id);
                const tabs = event.currentTarget.parentElement?.children;
                (tabs?.[place + by] as HTMLElement | undefined)?.focus();
              }
            }}
            role="tab"
            tabIndex={each.id === page ? 0 : -1}
            type="button"
          >
            {each.title}
            {faulty.has(each.id) && (
              <span className="jp-pai-Form-mark">{trans.__('faulty')}</span>
            )}
          </button>
        ))}
      </div>
    );
  }
);
Pages.displayName = 'Pages';
