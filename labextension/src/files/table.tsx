/**
 * The entries of a folder as a table.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import {
  deleteIcon,
  downloadIcon,
  fileIcon,
  folderIcon
} from '@jupyterlab/ui-components';
import * as React from 'react';
import { Cell } from '../detail/tasks';
import type { IFileEntry } from '../types';
import type { IColumn } from '../windowed';
import { WindowedTable } from '../windowed';
import { timeText } from '../words';
import type { FilesModel } from './model';
import type { Column } from './order';
import { within } from './paths';
import { sizeText } from './sizes';

/** Pixels below which a name and its buttons are all that fits. */
const NARROW = 530;

/** What can be done in a place that changes files; dialogs that choose one have none of it. */
export interface IFileActions {
  /** Upload files of this computer to the folder. */
  readonly upload: (files: readonly File[], hasFolders: boolean) => void;
  readonly chooseUploads: () => void;
  readonly newFolder: () => void;
  /** Delete what is at a path, after asking. */
  readonly remove: (path: string) => void;
}

/** What the parts of the page need. */
export interface IFilesProps {
  readonly model: FilesModel;
  readonly trans: TranslationBundle;
  readonly actions: IFileActions | null;
}

/** The width of an element, in pixels; zero until it is measured. */
function useWidth(box: React.RefObject<HTMLElement>): number {
  const [width, set] = React.useState(0);
  React.useLayoutEffect(() => {
    const node = box.current;
    if (!node || typeof ResizeObserver === 'undefined') {
      return;
    }
    const observer = new ResizeObserver(() => set(node.clientWidth));
    observer.observe(node);
    return () => observer.disconnect();
  }, [box]);
  return width;
}

/** The head of a column that orders the table. */
function columnOf(
  { model }: IFilesProps,
  id: Column,
  word: string,
  width: number
): IColumn {
  const { by, isDescending } = model.state.order;
  const order = isDescending ? 'descending' : 'ascending';
  return {
    id,
    width,
    sort: by === id ? order : 'none',
    head: (
      <button className="jp-pai-JobLink" onClick={() => model.orderBy(id)}>
        {word}
        {by === id && (isDescending ? ' ▼' : ' ▲')}
      </button>
    )
  };
}

/** Opens a folder; looks at a file, or chooses it. */
function Name(props: IFilesProps & { entry: IFileEntry }): JSX.Element {
  const { model, trans, actions, entry } = props;
  const { name, kind } = entry;
  const path = within(model.state.path, name);
  const isFolder = kind === 'directory';
  const open = () => {
    if (isFolder) {
      void model.open(path);
    } else if (actions) {
      void model.look(name);
    } else {
      model.choose(name);
    }
  };
  const Icon = isFolder ? folderIcon : fileIcon;
  return (
    <button
      aria-label={isFolder ? trans.__('Open the folder %1', name) : name}
      aria-pressed={isFolder ? undefined : path === model.state.chosen}
      className="jp-pai-JobLink jp-pai-Files-name"
      onClick={open}
      title={name}
    >
      <Icon.react tag="span" aria-hidden="true" width="16px" />
      <span>{name}</span>
    </button>
  );
}

function Buttons(props: IFilesProps & { entry: IFileEntry }): JSX.Element {
  const { model, trans, actions, entry } = props;
  const { name, kind } = entry;
  const path = within(model.state.path, name);
  const download = trans.__('Download %1', name);
  const remove = trans.__('Delete %1', name);
  return (
    <td className="jp-pai-Files-buttons">
      <button
        aria-label={remove}
        className="jp-pai-JobLink"
        onClick={() => actions?.remove(path)}
        title={remove}
      >
        <deleteIcon.react tag="span" width="16px" />
      </button>
      {kind === 'file' && (
        <a
          aria-label={download}
          className="jp-pai-JobLink"
          download={name}
          href={model.address(path)}
          title={download}
        >
          <downloadIcon.react tag="span" width="16px" />
        </a>
      )}
    </td>
  );
}

/** The table. */
export function FileTable(props: IFilesProps): JSX.Element {
  const { model, trans, actions } = props;
  const { entries, path, chosen } = model.state;
  const box = React.useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const isWide = width === 0 || width >= NARROW;
  const columns: IColumn[] = [
    columnOf(props, 'name', trans.__('Name'), isWide ? 200 : 110)
  ];
  if (isWide) {
    columns.push(columnOf(props, 'size', trans.__('Size'), 80));
    columns.push(columnOf(props, 'modified', trans.__('Changed'), 170));
  }
  if (actions) {
    columns.push({ id: 'buttons', head: trans.__('Actions'), width: 76 });
  }
  return (
    <div className="jp-pai-Files-table" ref={box}>
      <WindowedTable
        columns={columns}
        count={entries.length}
        key={path}
        label={trans.__('Files')}
        row={(place, attributes) => {
          const entry = entries[place];
          const isChosen = within(path, entry.name) === chosen;
          return (
            <tr
              {...attributes}
              data-chosen={isChosen || undefined}
              key={entry.name}
            >
              <th scope="row">
                <Name {...props} entry={entry} />
              </th>
              {isWide && (
                <>
                  <Cell
                    text={entry.kind === 'file' ? sizeText(entry.size) : ''}
                  />
                  <Cell text={timeText(entry.modified)} />
                </>
              )}
              {actions && <Buttons {...props} entry={entry} />}
            </tr>
          );
        }}
        rowHeight={34}
      />
    </div>
  );
}
