/**
 * Changes that would let a job start now, made in its document.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IWaiting } from '../types';
import type { Json, Path } from './paths';
import { withValue } from './paths';
import { rolesOf } from './roles';
import type { FormDialect } from './schema';

/** One change that the backend has tried. */
export type Change = IWaiting['changes'][number];

/** A change of the document, and what its button says. */
export interface IRemedy {
  readonly label: string;
  readonly path: Path;
  readonly value: Json;
}

/** The change in this document; null for one that is not the document's to make, or of a role that it does not have. */
export function remedyOf(
  trans: TranslationBundle,
  document: Json,
  dialect: FormDialect,
  change: Change
): IRemedy | null {
  const isV2 = dialect === 'v2';
  const roles = rolesOf(document);
  const role = roles.find(({ name }) => name === change.role) ?? null;
  const of = roles.length > 1 ? `${role?.name}: ` : '';
  switch (change.kind) {
    case 'virtual-cluster':
      return {
        label: trans.__('Use the virtual cluster %1', change.vc),
        path: isV2 ? ['defaults', 'virtualCluster'] : ['virtualCluster'],
        value: change.vc
      };
    case 'type':
      return isV2
        ? null
        : {
            label: trans.__('Use %1', change.leafType),
            path: ['gpuType'],
            value: change.leafType
          };
    case 'fewer-tasks':
      return (
        role && {
          label:
            of + trans._n('Ask for %1 task', 'Ask for %1 tasks', change.after),
          path: ['taskRoles', role.step, isV2 ? 'instances' : 'taskNumber'],
          value: change.after
        }
      );
    case 'smaller-tasks':
      return (
        role && {
          label:
            of +
            trans._n(
              'Ask for %1 GPU a task',
              'Ask for %1 GPUs a task',
              change.after
            ),
          path: [
            'taskRoles',
            role.step,
            ...(isV2 ? ['resourcePerInstance', 'gpu'] : ['gpuNumber'])
          ],
          value: change.after
        }
      );
    case 'opportunistic':
      return isV2
        ? {
            label: trans.__('Use what others leave free'),
            path: ['extras', 'hivedScheduler', 'jobPriorityClass'],
            value: 'oppo'
          }
        : null;
    default:
      return null;
  }
}

/** The document with a remedy. */
export function remedied(document: Json, remedy: IRemedy): Json {
  return withValue(document, remedy.path, remedy.value);
}
