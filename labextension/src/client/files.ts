/**
 * Calls about files of the backend's storage.
 */

import type { Connection } from '../request';
import { pathOf, withQuery } from '../request';
import type { IPaiClient } from '../tokens';
import type { IFileListing, IUploadState } from '../types';

/** Names of one answer, the most that the backend gives. */
const MOST_NAMES = 10_000;

function filePath(path: string): string {
  return `fs/${pathOf(...path.split('/').filter(Boolean))}`;
}

/** The calls. */
export function fileCalls(connection: Connection) {
  return {
    files: folder => connection.rows(`fs/${pathOf(...folder.split('/'))}`),
    listing: async (path, after) => {
      // Of a file no byte is wanted.
      const query = { after, limit: MOST_NAMES, length: 0 };
      const url = withQuery(filePath(path), query);
      const answer = await connection.api('GET', url);
      return answer.headers.get('X-Pai-Kind') === 'file'
        ? null
        : ((await answer.json()) as IFileListing);
    },
    readFile: async (path, length) => {
      const url = withQuery(filePath(path), { length });
      const answer = await connection.api('GET', url);
      return {
        bytes: await answer.arrayBuffer(),
        size: Number(answer.headers.get('X-Pai-Size') ?? 0),
        modified: answer.headers.get('Last-Modified')
      };
    },
    fileAddress: path => connection.address(filePath(path), {}),
    sendPart: async (path, { bytes, offset, size, replace, signal }) => {
      const url = withQuery(filePath(path), { offset, size, replace });
      const headers = { 'Content-Type': 'application/octet-stream' };
      const options = { body: bytes, headers, signal };
      const answer = await connection.api('PUT', url, options);
      return (await answer.json()) as IUploadState;
    },
    makeFolder: async path => {
      await connection.api('POST', filePath(path), { body: '{}' });
    },
    removeFile: async path => {
      const url = withQuery(filePath(path), { recursive: true });
      await connection.api('DELETE', url);
    }
  } satisfies Partial<IPaiClient>;
}
