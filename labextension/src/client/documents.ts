/**
 * Calls about documents: on their way to become jobs, of jobs, and those that are kept.
 */

import type { Connection } from '../request';
import { pathOf, textOf, withQuery } from '../request';
import type { IDocumentText, IPaiClient } from '../tokens';
import type { IJobDetail } from '../types';
import { jobPath } from './jobs';

/** The calls. */
export function documentCalls(connection: Connection) {
  const ask = <T>(what: string, { text, filename, secretsOf }: IDocumentText) =>
    connection.json<T>('POST', withQuery(what, { filename, secretsOf }), text);
  return {
    document: async (job, masked = false) => {
      const path = withQuery(jobPath(job, 'config'), {
        masked: masked || undefined
      });
      const answer = await connection.api('GET', path);
      const isJson = answer.headers.get('Content-Type')?.includes('json');
      const filename = isJson ? 'job.json' : 'job.yaml';
      const isMasked = answer.headers.has('X-Pai-Masked');
      return { text: await textOf(answer), filename, isMasked };
    },
    submit: async ({ text, filename, secretsOf }, terms = {}) => {
      const { name, replace, key } = terms;
      const path = withQuery('jobs', {
        name,
        filename,
        secretsOf,
        replace: replace ? 'true' : undefined
      });
      const headers: Record<string, string> = key
        ? { 'Idempotency-Key': key }
        : {};
      const options = { body: text, headers };
      const answer = await connection.api('POST', path, options);
      return answer.json() as Promise<IJobDetail>;
    },
    validate: document => ask('validate', document),
    trial: document => ask('trial', document),
    schema: dialect =>
      connection.json('GET', withQuery('schema/job', { dialect })),
    templates: () => connection.rows('templates'),
    drafts: () => connection.rows('drafts'),
    kept: async (kind, name) =>
      textOf(await connection.api('GET', pathOf(kind, name))),
    keep: async (kind, name, { text, filename }) => {
      const path = withQuery(pathOf(kind, name), { filename });
      await connection.api('PUT', path, { body: text });
    },
    discard: async (kind, name) => {
      await connection.api('DELETE', pathOf(kind, name));
    }
  } satisfies Partial<IPaiClient>;
}
