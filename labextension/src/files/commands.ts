/**
 * The commands of the page of files. Each that takes something away asks first.
 */

import {
  Dialog,
  InputDialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { folderIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { reported, reportProblem } from '../feedback';
import { CommandIDs } from '../tokens';
import type { FilesModel } from './model';
import { nameOf } from './paths';
import type { IToUpload } from './uploads';

/** Names that a question lists; of more their number is enough. */
const MOST_LISTED = 10;

/** What the commands act on. */
export interface IFilesOptions {
  readonly model: FilesModel;
  readonly trans: TranslationBundle;
  /** Show the page, at a path unless it is empty. */
  readonly show: (path: string) => Promise<void>;
}

/** Show the browser's file dialog for several files. Call it while a click is handled. */
async function chooseFiles(): Promise<File[]> {
  const input = document.createElement('input');
  input.type = 'file';
  input.multiple = true;
  return new Promise(resolve => {
    input.addEventListener('change', () => resolve([...(input.files ?? [])]));
    input.addEventListener('cancel', () => resolve([]));
    input.click();
  });
}

/** The names as a question lists them. */
function listed(trans: TranslationBundle, names: readonly string[]): string {
  const shown = names.slice(0, MOST_LISTED).join(', ');
  const more = names.length - MOST_LISTED;
  return more > 0 ? trans.__('%1 and %2 more', shown, more) : shown;
}

/** Ask what becomes of files whose names exist; null: upload none. */
async function mayReplace(
  trans: TranslationBundle,
  names: readonly string[],
  hasOthers: boolean
): Promise<boolean | null> {
  const skip = trans.__('Skip');
  const { button } = await showDialog({
    title: trans.__('Replace existing files?'),
    body: trans.__('The folder has these already: %1', listed(trans, names)),
    buttons: [
      Dialog.cancelButton(),
      ...(hasOthers ? [Dialog.okButton({ label: skip })] : []),
      Dialog.warnButton({ label: trans.__('Replace') })
    ]
  });
  if (!button.accept) {
    return null;
  }
  return button.label !== skip;
}

/**
 * Upload files to the folder that is shown. Existing ones are replaced only after a question. Never rejects.
 *
 * `hasFolders`: folders came with them, which is said.
 */
export async function uploadFiles(
  { model, trans }: IFilesOptions,
  files: readonly File[],
  hasFolders = false
): Promise<void> {
  const folder = model.state.path;
  if (hasFolders) {
    Notification.warning(
      trans.__('Folders are not uploaded here. In a shell, pai upload does it.')
    );
  }
  if (files.length === 0) {
    return;
  }
  try {
    const there = new Set(await model.existing(files.map(each => each.name)));
    const hasOthers = there.size < files.length;
    const replaces =
      there.size === 0 ? false : await mayReplace(trans, [...there], hasOthers);
    if (replaces === null) {
      return;
    }
    const wanted: IToUpload[] = files
      .filter(file => replaces || !there.has(file.name))
      .map(file => ({ file, replace: there.has(file.name) }));
    model.uploads.add(folder, wanted);
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

async function newFolder({ model, trans }: IFilesOptions): Promise<void> {
  const { value, button } = await InputDialog.getText({
    title: trans.__('New folder'),
    label: trans.__('Name'),
    okLabel: trans.__('Make')
  });
  const name = value?.trim() ?? '';
  if (button.accept && name) {
    await model.makeFolder(name);
  }
}

async function deleteFile(
  { model, trans }: IFilesOptions,
  path: string
): Promise<void> {
  const name = nameOf(path);
  const entry = model.state.entries.find(each => each.name === name);
  const { button } = await showDialog({
    title: trans.__('Delete %1?', name),
    body:
      entry?.kind === 'directory'
        ? trans.__('The folder is deleted with all that is in it, for good.')
        : trans.__('The file is deleted for good.'),
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({ label: trans.__('Delete') })
    ]
  });
  if (button.accept) {
    await model.remove(path);
  }
}

/** The path among the arguments of a command; empty without one. */
function pathIn({ path }: ReadonlyPartialJSONObject): string {
  return typeof path === 'string' ? path : '';
}

/** Add the commands. */
export function addFilesCommands(
  commands: CommandRegistry,
  options: IFilesOptions
): void {
  const { model, trans, show } = options;
  const told = (work: Promise<void>) => reported(trans, work);
  const none = { args: { type: 'object', properties: {} } } as const;
  const path = { type: 'string', description: 'Path in the storage.' } as const;
  const isInFolder = () => model.state.path !== '' && model.state.path !== '/';
  commands.addCommand(CommandIDs.showFiles, {
    label: trans.__('Show the Files of PAI'),
    caption: trans.__("Files of the backend's storage: code, data and outputs"),
    icon: folderIcon,
    describedBy: { args: { type: 'object', properties: { path } } },
    execute: args => show(pathIn(args))
  });
  commands.addCommand(CommandIDs.uploadFiles, {
    label: trans.__('Upload Files to PAI…'),
    describedBy: none,
    isEnabled: isInFolder,
    execute: async () => uploadFiles(options, await chooseFiles())
  });
  commands.addCommand(CommandIDs.newFolder, {
    label: trans.__('New Folder of PAI…'),
    describedBy: none,
    isEnabled: isInFolder,
    execute: () => told(newFolder(options))
  });
  commands.addCommand(CommandIDs.deleteFile, {
    label: trans.__('Delete File of PAI…'),
    describedBy: {
      args: { type: 'object', properties: { path }, required: ['path'] }
    },
    isEnabled: args => pathIn(args) !== '',
    execute: args => told(deleteFile(options, pathIn(args)))
  });
}
