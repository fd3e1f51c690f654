/**
 * The task roles of a document, one at a time.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import {
  addIcon,
  caretLeftIcon,
  caretRightIcon,
  closeIcon,
  copyIcon
} from '@jupyterlab/ui-components';
import * as React from 'react';
import { IconButton } from './fields';
import type { Json } from './paths';
import { isList, isObject, memberOf, textOf, withValue } from './paths';
import type { IFormSchema } from './schema';
import { initialOf } from './schema';

/** A role and what it is called. */
export interface IRole {
  readonly name: string;
  /** Where it stands below `taskRoles`. */
  readonly step: string | number;
  readonly value: Json;
}

/** The roles of a document, whether it lists them or names them. */
export function rolesOf(value: Json): IRole[] {
  const roles = memberOf(value, 'taskRoles');
  if (isList(roles)) {
    return roles.map((each, step) => {
      const name = memberOf(each, 'name');
      return { name: textOf(name), step, value: each };
    });
  }
  return isObject(roles)
    ? Object.entries(roles).map(([name, each]) => ({
        name,
        step: name,
        value: each
      }))
    : [];
}

/** A name like `wanted` that none of these has. */
export function freeName(wanted: string, taken: readonly string[]): string {
  const stem = wanted.replace(/_\d+$/, '') || 'role';
  let name = wanted || 'role';
  for (let number = 2; taken.includes(name); number++) {
    name = `${stem}_${number}`;
  }
  return name;
}

/** The document with these roles; each keeps its place. */
export function withRoles(value: Json, roles: readonly IRole[]): Json {
  const isMap = isObject(memberOf(value, 'taskRoles'));
  const put = isMap
    ? Object.fromEntries(roles.map(role => [role.name, role.value]))
    : roles.map(role => role.value);
  return withValue(value, ['taskRoles'], put);
}

function named(role: IRole, name: string): IRole {
  return typeof role.step === 'number'
    ? { ...role, name, value: withValue(role.value, ['name'], name) }
    : { ...role, name };
}

/** The document with a copy of a role behind it. */
export function duplicated(value: Json, index: number): Json {
  const roles = rolesOf(value);
  const names = roles.map(role => role.name);
  const copy = named(roles[index], freeName(roles[index].name, names));
  return withRoles(value, [
    ...roles.slice(0, index + 1),
    copy,
    ...roles.slice(index + 1)
  ]);
}

/** The document with another role, which needs what the last one needs and has no command yet. */
export function added(value: Json, schema: IFormSchema): Json {
  const roles = rolesOf(value);
  const last = roles[roles.length - 1];
  const name = freeName(
    last?.name ?? 'worker',
    roles.map(role => role.name)
  );
  const isMap = isObject(memberOf(value, 'taskRoles'));
  let role = last?.value ?? initialOf(schema);
  for (const [key, empty] of [
    ['command', ''],
    ['commands', []]
  ] as const) {
    if (memberOf(role, key) !== undefined) {
      role = withValue(role, [key], empty);
    }
  }
  const step = isMap ? name : roles.length;
  return withRoles(value, [...roles, named({ name, step, value: role }, name)]);
}

/** The strip of roles: which one is shown, and what can be done with it. A key in a role does not concern it. */
export const RoleStrip = React.memo(
  (props: {
    trans: TranslationBundle;
    roles: readonly Pick<IRole, 'name' | 'step'>[];
    schema: IFormSchema;
    index: number;
    /** Steps of roles with faults. */
    faulty: readonly (string | number)[];
    select: (index: number) => void;
    change: (make: (value: Json) => Json) => void;
    swap: (index: number) => void;
  }): JSX.Element => {
    const { trans, roles, schema, index, faulty, select, change, swap } = props;
    const name = roles[index]?.name ?? '';
    return (
      <div className="jp-pai-Form-roles">
        <div aria-label={trans.__('Task roles')} role="tablist">
          {roles.map((role, place) => (
            <button
              aria-selected={place === index}
              data-faulty={faulty.includes(role.step) || undefined}
              key={role.step}
              onClick={() => select(place)}
              onKeyDown={event => {
                const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0;
                const next = place + by;
                if (by !== 0 && next >= 0 && next < roles.length) {
                  select(next);
                  const tabs = event.currentTarget.parentElement?.children;
                  (tabs?.[next] as HTMLElement | undefined)?.focus();
                }
              }}
              role="tab"
              tabIndex={place === index ? 0 : -1}
              type="button"
            >
              {role.name || trans.__('unnamed')}
            </button>
          ))}
        </div>
        <div
          aria-label={trans.__('Change the task roles')}
          className="jp-pai-Form-tools"
          role="group"
        >
          <IconButton
            icon={addIcon}
            label={trans.__('Add a task role')}
            onClick={() => {
              change(value => added(value, schema));
              select(roles.length);
            }}
          />
          <IconButton
            disabled={!roles[index]}
            icon={copyIcon}
            label={trans.__('Duplicate %1', name)}
            onClick={() => {
              change(value => duplicated(value, index));
              select(index + 1);
            }}
          />
          <IconButton
            disabled={index <= 0}
            icon={caretLeftIcon}
            label={trans.__('Move %1 before', name)}
            onClick={() => {
              swap(index - 1);
              select(index - 1);
            }}
          />
          <IconButton
            disabled={index + 1 >= roles.length}
            icon={caretRightIcon}
            label={trans.__('Move %1 behind', name)}
            onClick={() => {
              swap(index);
              select(index + 1);
            }}
          />
          <IconButton
            disabled={roles.length < 2}
            icon={closeIcon}
            label={trans.__('Remove %1', name)}
            onClick={() => {
              change(value =>
                withRoles(
                  value,
                  rolesOf(value).filter((_, place) => place !== index)
                )
              );
              select(Math.max(0, index - 1));
            }}
          />
        </div>
      </div>
    );
  }
);
RoleStrip.displayName = 'RoleStrip';
