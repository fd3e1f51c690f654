/**
 * Fields for parts of the cluster, which know what is free there. Free text is always taken.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { freeGpus } from '../cluster/nodes';
import type { IClusterUse } from '../types';
import type { Json } from './paths';
import { memberOf, textOf } from './paths';

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
  /** Images that were used before in this browser. */
  readonly images: readonly string[];
  /** GPUs of a task of the role that is shown; none on other pages. */
  readonly gpus?: number;
  /** Names in a folder of the backend's storage; folders end with a slash. None when it cannot be listed. */
  readonly names: (folder: string) => Promise<readonly string[]>;
  /** Let the user choose a folder of the Jupyter server and send it; what it is called there, null when cancelled. */
  readonly sendFolder: (() => Promise<string | null>) | null;
  /** The folder of the Jupyter server that was sent and is called this; null when none is. */
  readonly sentFolder: (codeDir: string) => string | null;
  /** Let the user choose of the backend's storage, from where a path points; null when cancelled. */
  readonly browseStorage: (path: string) => Promise<string | null>;
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
      const note = trans.__('%1 of %2 GPUs free now', free, owned);
      return {
        value: each.name,
        note:
          each.mostGpus === null
            ? note
            : trans.__('%1, you may use %2', note, each.mostGpus)
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
    const free = isOpen ? freeGpus(node) : 0;
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
  isNumber?: boolean;
}): JSX.Element {
  const { widget, choices, isNumber } = props;
  const { id, value, label, onChange, options, required, schema } = widget;
  const text = textOf(value);
  return (
    <>
      <input
        aria-describedby={`${id}__description`}
        className="jp-mod-styled"
        id={id}
        min={isNumber ? (schema.minimum ?? 0) : undefined}
        onChange={event => onChange(event.target.value)}
        placeholder={isNumber ? textOf(options.fallback) : undefined}
        required={required}
        spellCheck={false}
        type={isNumber ? 'number' : 'text'}
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

/** Nodes that take tasks, with the GPUs and of them the free ones. */
function openNodes(
  use: IClusterUse | null
): { free: number; gpus: number; cpus: number; memoryMb: number }[] {
  return (use?.nodes ?? [])
    .filter(node => node.ready && node.schedulable)
    .map(node => ({
      ...node,
      free: Math.max(0, freeGpus(node))
    }));
}

/** Numbers of GPUs that one node may give a task, with how many nodes do so now. */
export function gpuChoices(
  use: IClusterUse | null,
  trans: TranslationBundle
): IChoice[] {
  const nodes = openNodes(use);
  const largest = Math.max(0, ...nodes.map(node => node.gpus));
  const sizes = [1, 2, 4, 8, 16].filter(size => size < largest);
  return (largest > 0 ? [...sizes, largest] : []).map(size => {
    const fitting = nodes.filter(node => node.free >= size).length;
    return {
      value: String(size),
      note: trans._n('free on %1 node', 'free on %1 nodes', fitting)
    };
  });
}

/** GPUs of a task of a role; 0 where it says none. */
export function gpusOf(role: Json | undefined): number {
  const asked =
    memberOf(role, 'gpuNumber') ??
    memberOf(memberOf(role, 'resourcePerInstance'), 'gpu');
  return typeof asked === 'number' ? asked : 0;
}

/** What of a node belongs to so many GPUs: the least among the nodes that have them. */
export function shareOf(
  use: IClusterUse | null,
  gpus: number,
  of: 'cpus' | 'memoryMb'
): { gpus: number; share: number } | null {
  const shares = openNodes(use)
    .filter(node => gpus > 0 && node.gpus >= gpus)
    .map(node => Math.floor((node[of] * gpus) / node.gpus));
  const share = Math.min(...shares);
  return shares.length > 0 && share > 0 ? { gpus, share } : null;
}

/** A number with choices under it. */
function ChosenNumber(props: {
  widget: IWidgetProps;
  choices: readonly IChoice[];
}): JSX.Element {
  const { widget, choices } = props;
  const { onChange, value } = widget;
  return (
    <Chosen
      choices={choices}
      widget={{
        ...widget,
        value: textOf(value),
        onChange: typed => onChange(typed === '' ? undefined : Number(typed))
      }}
      isNumber
    />
  );
}

function Gpus(props: IWidgetProps): JSX.Element {
  const { use, trans } = contextOf(props);
  return <ChosenNumber choices={gpuChoices(use, trans)} widget={props} />;
}

/** CPUs or memory, with what belongs to the role's GPUs. */
function share(of: 'cpus' | 'memoryMb') {
  return function Share(props: IWidgetProps): JSX.Element {
    const { use, trans, gpus } = contextOf(props);
    const found = shareOf(use, gpus ?? 0, of);
    const choices = found
      ? [
          {
            value: String(found.share),
            note: trans._n('for %1 GPU', 'for %1 GPUs', found.gpus)
          }
        ]
      : [];
    return <ChosenNumber choices={choices} widget={props} />;
  };
}

/** A text with suggestions that open as it is typed. */
function Suggested(props: {
  widget: IWidgetProps;
  suggestions: readonly string[];
  onFocus?: () => void;
}): JSX.Element {
  const { widget, suggestions, onFocus } = props;
  const { id, value, onChange } = widget;
  return (
    <>
      <input
        aria-describedby={`${id}__description`}
        className="jp-mod-styled"
        id={id}
        list={`${id}-list`}
        onChange={event => onChange(event.target.value)}
        onFocus={onFocus}
        spellCheck={false}
        value={textOf(value)}
      />
      <datalist id={`${id}-list`}>
        {suggestions.map(each => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}

function Image(props: IWidgetProps): JSX.Element {
  const { images, use } = contextOf(props);
  const all = [...new Set([...images, ...(use?.images ?? [])])];
  return <Suggested suggestions={all} widget={props} />;
}

/** The backend's storage, as documents write it. */
const STORAGE = '$PAI_DEFAULT_FS_URI/';

/** The folder that a path is typed in; empty when it is not of the backend's storage. */
export function folderOf(path: string): string {
  return path.startsWith(STORAGE)
    ? path.slice(0, path.lastIndexOf('/') + 1)
    : '';
}

function PathOf(
  props: IWidgetProps & { beside?: JSX.Element | null }
): JSX.Element {
  const { value, label, onChange } = props;
  const { trans, browseStorage, names } = contextOf(props);
  const take = (path: string | null) => path !== null && onChange(path);
  const [isOpen, open] = React.useState(false);
  const [found, set] = React.useState<readonly string[]>([]);
  const folder = folderOf(textOf(value)) || STORAGE;
  React.useEffect(() => {
    let isCurrent = isOpen;
    if (isOpen) {
      void names(folder.slice(STORAGE.length)).then(
        listed => isCurrent && set(listed.map(name => folder + name))
      );
    }
    return () => {
      isCurrent = false;
    };
  }, [folder, isOpen, names]);
  return (
    <div className="jp-pai-Form-path">
      <Suggested
        onFocus={() => open(true)}
        suggestions={found}
        widget={props}
      />
      <button
        aria-label={trans.__('Storage: %1', label)}
        className="jp-mod-styled"
        onClick={() => void browseStorage(textOf(value)).then(take)}
        title={trans.__("Choose from the backend's storage")}
        type="button"
      >
        {trans.__('Storage…')}
      </button>
      {props.beside}
    </div>
  );
}

/** The directory that a code tree `NAME.DIGEST.tree` is in a task. */
function treeName(codeDir: string): string {
  const name = codeDir.slice(codeDir.lastIndexOf('/') + 1);
  return name.split('.').slice(0, -2).join('.');
}

/** A path of code, which may come from the Jupyter server. */
function CodeFolder(props: IWidgetProps): JSX.Element {
  const { value, label, onChange } = props;
  const { trans, sendFolder, sentFolder } = contextOf(props);
  const [isSending, wait] = React.useState(false);
  const folder = sentFolder(textOf(value));
  const send = async () => {
    wait(true);
    const codeDir = await sendFolder?.();
    wait(false);
    if (codeDir) {
      onChange(codeDir);
    }
  };
  const button = sendFolder && (
    <button
      aria-label={trans.__('From Jupyter: %1', label)}
      className="jp-mod-styled"
      disabled={isSending}
      onClick={() => void send()}
      title={trans.__('Send a folder of Jupyter along')}
      type="button"
    >
      {isSending ? trans.__('Sending…') : trans.__('From Jupyter…')}
    </button>
  );
  return (
    <>
      <PathOf {...props} beside={button} />
      {folder !== null && (
        <p className="jp-pai-Form-help">
          {trans.__(
            'Folder %1 of Jupyter is %2 in the task. It is sent again when you submit.',
            folder || '/',
            treeName(textOf(value))
          )}
        </p>
      )}
    </>
  );
}

/** Widgets by `x-widget`. */
export const pickers = {
  'virtual-cluster': VirtualCluster,
  'gpu-type': GpuType,
  gpus: Gpus,
  cpus: share('cpus'),
  memory: share('memoryMb'),
  image: Image,
  path: PathOf,
  code: CodeFolder
};
