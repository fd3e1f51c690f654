/**
 * Paths of the backend's storage: absolute, without an end slash but for the root.
 */

/** The backend's storage, as documents write it. */
const IN_DOCUMENTS = '$PAI_DEFAULT_FS_URI';

/** How the shell client writes it. */
const IN_SHELLS = 'pai://';

/** A folder on the way to a path. */
export interface ICrumb {
  /** Empty for the root. */
  readonly name: string;
  readonly path: string;
}

/** A path as it was typed: plain, or as documents or shells write it; `.` and `..` are resolved. */
export function pathFrom(typed: string): string {
  const text = typed.trim();
  const start = [IN_DOCUMENTS, IN_SHELLS].find(each => text.startsWith(each));
  const names: string[] = [];
  for (const name of text.slice(start?.length ?? 0).split('/')) {
    if (name === '..') {
      names.pop();
    } else if (name !== '' && name !== '.') {
      names.push(name);
    }
  }
  return `/${names.join('/')}`;
}

/** The path of a name in a folder. */
export function within(folder: string, name: string): string {
  return pathFrom(`${folder}/${name}`);
}

/** The folder that a path is in; that of the root is the root. */
export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

/** The last name of a path; empty for the root. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** A path as documents write it. */
export function inDocuments(path: string): string {
  return `${IN_DOCUMENTS}${path === '/' ? '/' : path}`;
}

/** Whether a field of a document names a place of the backend's storage. */
export function isOfStorage(text: string): boolean {
  return text.startsWith(`${IN_DOCUMENTS}/`);
}

/** The folders from the root to a path, itself the last. */
export function crumbsOf(path: string): ICrumb[] {
  const names = path.split('/').filter(Boolean);
  return [
    { name: '', path: '/' },
    ...names.map((name, index) => ({
      name,
      path: `/${names.slice(0, index + 1).join('/')}`
    }))
  ];
}
