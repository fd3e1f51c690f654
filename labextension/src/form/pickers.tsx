/**
 * Fields for parts of the cluster, which know what is free there. Free text is always taken.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { IClusterUse } from '../types';
import type { Json } from './paths';
import { textOf } from './paths';

/** What rjsf gives a widget, as far as ours go by it. */
export interface IWidgetProps {
  readonly id: string;
  readonly value?: Json;
  readonly label: string;
  readonly required?: boolean;
  readonly options: { readonly fallback?: Json };
  readonly schema: { readonly minimum?: number; readonly description?: string };
  readonly formContext?: unknown;
  readonly onChange: (value?: Json) => void;
}

/** What pickers know. */
export interface IPickContext {
  readonly trans: TranslationBundle;
  /** Who uses the cluster; null while that is not known. */
  readonly use: IClusterUse | null;
  /** Images that were used before. */
  readonly images: readonly string[];
  /** Let the user choose a file or folder of the Jupyter server; null when cancelled. */
  readonly browse: (() => Promise<string | null>) | null;
}

/** One choice: its value, and what is known of it. */
export interface IChoice {
  readonly value: string;
  readonly note: string;
}

/** The virtual clusters that the user may use, with what is free there. */
export function clusterChoices(
  use: IClusterUse | null,
  trans: TranslationBundle
): IChoice[] {
  return (use?.virtualClusters ?? [])
    .filter(each => each.granted)
    .map(each => {
      const free = each.cells.reduce((sum, cells) => sum + cells.free, 0);
      const owned = each.cells.reduce((sum, cells) => sum + cells.owned, 0);
      return {
        value: each.name,
        note: trans.__('%1 of %2 GPUs free', free, owned)
      };
    });
}

/** Free and all GPUs of each type, and the most that one node has free. */
export function gpusByType(
  use: IClusterUse | null
): Map<string, { free: number; all: number; largest: number }> {
  const found = new Map<
    string,
    { free: number; all: number; largest: number }
  >();
  for (const node of use?.nodes ?? []) {
    if (node.gpus === 0) {
      continue;
    }
    const isOpen = node.ready && node.schedulable;
    const free = isOpen ? node.gpus - node.usedGpus - node.badGpus : 0;
    for (const type of node.gpuTypes) {
      const was = found.get(type) ?? { free: 0, all: 0, largest: 0 };
      found.set(type, {
        free: was.free + Math.max(0, free),
        all: was.all + node.gpus,
        largest: Math.max(was.largest, free)
      });
    }
  }
  return found;
}

function typeChoices(
  use: IClusterUse | null,
  trans: TranslationBundle
): IChoice[] {
  return [...gpusByType(use)].map(([value, { free, all, largest }]) => ({
    value,
    note: trans.__('%1 of %2 free, %3 on one node', free, all, largest)
  }));
}

/** A text field with choices under it; the chosen one is pressed, and pressing it again takes it back. */
function Chosen(props: {
  widget: IWidgetProps;
  choices: readonly IChoice[];
}): JSX.Element {
  const { widget, choices } = props;
  const { id, value, label, onChange, required } = widget;
  const text = textOf(value);
  return (
    <>
      <input
        aria-describedby={`${id}__description`}
        className="jp-mod-styled"
        id={id}
        onChange={event => onChange(event.target.value)}
        required={required}
        spellCheck={false}
        value={text}
      />
      {choices.length > 0 && (
        <div aria-label={label} className="jp-pai-Form-chips" role="group">
          {choices.map(each => (
            <button
              aria-pressed={each.value === text}
              key={each.value}
              onClick={() => onChange(each.value === text ? '' : each.value)}
              type="button"
            >
              <strong>{each.value}</strong> <span>{each.note}</span>
            </button>
          ))}
        </div>
      )}
    </>
  );
}

function contextOf(props: IWidgetProps): IPickContext {
  return props.formContext as IPickContext;
}

function VirtualCluster(props: IWidgetProps): JSX.Element {
  const { use, trans } = contextOf(props);
  return <Chosen choices={clusterChoices(use, trans)} widget={props} />;
}

function GpuType(props: IWidgetProps): JSX.Element {
  const { use, trans } = contextOf(props);
  return <Chosen choices={typeChoices(use, trans)} widget={props} />;
}

function Gpus(props: IWidgetProps): JSX.Element {
  const { id, value, onChange, options } = props;
  const { use, trans } = contextOf(props);
  const sizes = (use?.nodes ?? []).map(node => node.gpus);
  const largest = Math.max(0, ...sizes);
  return (
    <>
      <input
        aria-describedby={`${id}__description`}
        className="jp-mod-styled"
        id={id}
        min={0}
        onChange={event =>
          onChange(
            event.target.value === '' ? undefined : Number(event.target.value)
          )
        }
        placeholder={textOf(options.fallback)}
        type="number"
        value={value === undefined || value === null ? '' : Number(value)}
      />
      {use && (
        <p className="jp-pai-Form-help">
          {trans.__('The largest node has %1.', largest)}
        </p>
      )}
    </>
  );
}

function Image(props: IWidgetProps): JSX.Element {
  const { id, value, onChange } = props;
  const { images } = contextOf(props);
  return (
    <>
      <input
        aria-describedby={`${id}__description`}
        className="jp-mod-styled"
        id={id}
        list={`${id}-list`}
        onChange={event => onChange(event.target.value)}
        spellCheck={false}
        value={textOf(value)}
      />
      <datalist id={`${id}-list`}>
        {images.map(each => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}

function PathOf(props: IWidgetProps): JSX.Element {
  const { id, value, label, onChange } = props;
  const { trans, browse } = contextOf(props);
  return (
    <div className="jp-pai-Form-path">
      <input
        aria-describedby={`${id}__description`}
        className="jp-mod-styled"
        id={id}
        onChange={event => onChange(event.target.value)}
        spellCheck={false}
        value={textOf(value)}
      />
      {browse && (
        <button
          aria-label={trans.__('Browse: %1', label)}
          className="jp-mod-styled"
          onClick={() => {
            void browse().then(path => path !== null && onChange(path));
          }}
          type="button"
        >
          {trans.__('Browse…')}
        </button>
      )}
    </div>
  );
}

/** Widgets by `x-widget`. */
export const pickers = {
  'virtual-cluster': VirtualCluster,
  'gpu-type': GpuType,
  gpus: Gpus,
  image: Image,
  path: PathOf
};
