/**
 * The files of the backend's storage, a folder at a time.
 */

import { folderIcon } from '@jupyterlab/ui-components';
import * as React from 'react';
import { ModelView, ProblemBox } from '../components';
import { crumbsOf } from './paths';
import { Preview } from './preview_view';
import type { IFilesProps } from './table';
import { FileTable } from './table';
import { UploadList } from './upload_list';

/** The folders on the way, each of which opens. */
function Crumbs({ model, trans }: IFilesProps): JSX.Element {
  const { path } = model.state;
  const crumbs = crumbsOf(path || '/');
  return (
    <nav aria-label={trans.__('Folders')}>
      <ol>
        {crumbs.map(crumb => (
          <li key={crumb.path}>
            <button
              aria-current={crumb.path === path ? 'page' : undefined}
              className="jp-pai-JobLink"
              onClick={() => void model.open(crumb.path)}
            >
              {crumb.name || trans.__('Storage')}
            </button>
          </li>
        ))}
      </ol>
    </nav>
  );
}

/** Goes to a path that is typed. */
function GoTo({ model, trans }: IFilesProps): JSX.Element {
  const { path } = model.state;
  const [typed, type] = React.useState(path);
  React.useEffect(() => type(path), [path]);
  return (
    <form
      className="jp-pai-Files-goto"
      onSubmit={event => {
        event.preventDefault();
        void model.open(typed);
      }}
    >
      <input
        aria-label={trans.__('Path')}
        className="jp-mod-styled"
        onChange={event => type(event.target.value)}
        spellCheck={false}
        value={typed}
      />
      <button className="jp-mod-styled" type="submit">
        {trans.__('Go')}
      </button>
    </form>
  );
}

function Bar(props: IFilesProps): JSX.Element {
  const { model, trans, actions } = props;
  // What is right below the root are the folders of users and those that are shared.
  const isRoot = model.state.path === '/';
  return (
    <div className="jp-pai-Files-bar">
      {actions && (
        <>
          <button
            className="jp-mod-styled"
            disabled={isRoot}
            onClick={() => actions.chooseUploads()}
          >
            {trans.__('Upload…')}
          </button>
          <button
            className="jp-mod-styled"
            disabled={isRoot}
            onClick={() => actions.newFolder()}
          >
            {trans.__('New Folder…')}
          </button>
        </>
      )}
      <button className="jp-mod-styled" onClick={() => void model.refresh()}>
        {trans.__('Refresh')}
      </button>
      <GoTo {...props} />
    </div>
  );
}

function Listing(props: IFilesProps): JSX.Element {
  const { model, trans, actions } = props;
  const { entries, isLoading, isTruncated, problem } = model.state;
  const isEmpty = entries.length === 0;
  return (
    <>
      {problem && <ProblemBox problem={problem} trans={trans} />}
      <p role="status">
        {isLoading
          ? trans.__('Loading…')
          : !problem && trans._n('%1 name', '%1 names', entries.length)}
        {isTruncated &&
          ` ${trans.__('The folder has more, which are not listed.')}`}
      </p>
      {isEmpty && !isLoading && !problem && actions && (
        <p>
          {trans.__('The folder is empty. Drop files here to upload them.')}
        </p>
      )}
      {!isEmpty && <FileTable {...props} />}
    </>
  );
}

/** What a drag brings is files of this computer, not something of the page. */
function bringsFiles(event: React.DragEvent): boolean {
  return event.dataTransfer.types.includes('Files');
}

/** The files of a drop, and whether there were folders, for which browsers give no bytes. */
export function dropped(transfer: DataTransfer): {
  files: File[];
  hasFolders: boolean;
} {
  const isFolder = (item: DataTransferItem) =>
    item.webkitGetAsEntry?.()?.isDirectory === true;
  const items = [...transfer.items];
  const files = items
    .filter(item => !isFolder(item))
    .map(item => item.getAsFile())
    .filter((file): file is File => file !== null);
  return { files, hasFolders: items.some(isFolder) };
}

/** The page as a function of the model's state. */
export function Files(props: IFilesProps): JSX.Element {
  const { model, trans, actions } = props;
  const { path, preview } = model.state;
  const [isOver, setOver] = React.useState(false);
  const mayDrop = actions !== null && path !== '' && path !== '/';
  return (
    <div
      className="jp-pai-Files-body"
      data-drop={(mayDrop && isOver) || undefined}
      onDragLeave={event => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) {
          setOver(false);
        }
      }}
      onDragOver={event => {
        if (mayDrop && bringsFiles(event)) {
          event.preventDefault();
          setOver(true);
        }
      }}
      onDrop={event => {
        setOver(false);
        if (mayDrop && bringsFiles(event)) {
          event.preventDefault();
          const { files, hasFolders } = dropped(event.dataTransfer);
          actions.upload(files, hasFolders);
        }
      }}
    >
      <Crumbs {...props} />
      <Bar {...props} />
      {actions && <UploadList trans={trans} uploads={model.uploads} />}
      <div className="jp-pai-Files-split">
        <div className="jp-pai-Files-list">
          <Listing {...props} />
        </div>
        {actions && preview && <Preview {...props} preview={preview} />}
      </div>
    </div>
  );
}

/** The files in a page or a dialog. The model outlives it. */
export class FilesView extends ModelView<IFilesProps> {
  constructor(props: IFilesProps) {
    super(shown => <Files {...shown} />, props);
    const { trans } = props;
    this.addClass('jp-pai-Files');
    this.title.icon = folderIcon;
    this.title.label = trans.__('PAI Files');
    this.title.closable = true;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('PAI Files'));
    this.model = props.model;
  }

  readonly model: IFilesProps['model'];
}
