/**
 * The backend's schema of job documents, as far as a form goes by it.
 *
 * Keywords of our own are those of the backend (`docs/rest.md`): `x-section`, `x-widget`, `x-words`, `x-fallback`.
 */

import { inLocale } from '../language';
import type { IJsonObject, Json, Path } from './paths';
import { isList, isObject, same, textOf } from './paths';

/** The dialects there are forms for. */
export type FormDialect = 'v1' | 'qizhi' | 'scm' | 'v2';

/** A schema, or a part of one. */
export interface IFormSchema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, IFormSchema>>;
  readonly additionalProperties?: IFormSchema;
  readonly items?: IFormSchema;
  readonly required?: readonly string[];
  readonly allOf?: readonly {
    readonly if: IFormSchema;
    readonly then: IFormSchema;
  }[];
  readonly const?: Json;
  readonly default?: Json;
  readonly enum?: readonly Json[];
  readonly minimum?: number;
  readonly 'x-dialect'?: string;
  /** Only a frame around fields of several pages; it is not drawn. */
  readonly 'x-flat'?: boolean;
  readonly 'x-section'?: string;
  readonly 'x-sections'?: readonly (IFormSchema & { readonly id: string })[];
  readonly 'x-widget'?: string;
  readonly 'x-fallback'?: Json;
  readonly 'x-words'?: Readonly<
    Record<string, { readonly title: string; readonly description?: string }>
  >;
}

/** How the parts of a form are shown, as rjsf takes it. */
export type UiSchema = Record<string, unknown>;

/** What is drawn by a field of ours in the place of rjsf's for the type. */
const OWN_FIELDS = new Set(['lines', 'scalar', 'text-or-lines']);

/** Which dialect a document is written in, as the backend finds it. */
export function dialectOf(value: Json, text: string): FormDialect {
  if (isObject(value)) {
    if ('protocolVersion' in value || 'protocol_version' in value) {
      return 'v2';
    }
    const roles = isList(value.taskRoles) ? value.taskRoles : [];
    if (
      'tmp' in value ||
      roles.some(role => isObject(role) && 'storageGB' in role)
    ) {
      return 'scm';
    }
    if (text.includes('QIZHI_') || 'killAllOnCompletedTaskNumber' in value) {
      return 'qizhi';
    }
  }
  return 'v1';
}

function mapped(
  schema: IFormSchema,
  change: (part: IFormSchema) => IFormSchema
): IFormSchema {
  const { properties, additionalProperties, items, allOf } = schema;
  return change({
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, part]) => [
          name,
          mapped(part, change)
        ])
      )
    }),
    ...(additionalProperties && {
      additionalProperties: mapped(additionalProperties, change)
    }),
    ...(items && { items: mapped(items, change) }),
    ...(allOf && {
      allOf: allOf.map(each => ({
        if: each.if,
        then: mapped(each.then, change)
      }))
    })
  });
}

/** A copy whose titles and descriptions are in a language, as JupyterLab calls it (`zh-CN`); else in English. */
export function inLanguage(schema: IFormSchema, language: string): IFormSchema {
  const translate = (part: IFormSchema): IFormSchema => ({
    ...part,
    ...inLocale(part['x-words'], language)
  });
  const sections = schema['x-sections'];
  return {
    ...mapped(schema, translate),
    ...(sections && {
      'x-sections': sections.map(each => ({
        ...each,
        ...inLocale(each['x-words'], language)
      }))
    })
  };
}

/** The part of a schema that one page of the form shows; hidden fields are on none. */
export function ofSection(schema: IFormSchema, section: string): IFormSchema {
  const kept = Object.entries(schema.properties ?? {}).flatMap(
    ([name, field]): [string, IFormSchema][] => {
      if (field['x-widget'] === 'hidden') {
        return [];
      }
      const own = field['x-section'];
      if (own !== undefined || !field.properties) {
        return own === section ? [[name, field]] : [];
      }
      const inner = ofSection(field, section);
      return Object.keys(inner.properties ?? {}).length > 0
        ? [[name, { ...inner, 'x-flat': true }]]
        : [];
    }
  );
  const properties = Object.fromEntries(kept);
  return {
    type: 'object',
    properties,
    required: (schema.required ?? []).filter(name => name in properties)
  };
}

/** The page that shows what stands at a path; undefined when none does. */
export function sectionOf(
  schema: IFormSchema | undefined,
  path: Path
): string | undefined {
  const [step, ...rest] = path;
  const field = schema?.properties?.[String(step)];
  return field?.['x-section'] ?? (field && sectionOf(field, rest));
}

function typeOf(schema: IFormSchema): string {
  const { type } = schema;
  return typeof type === 'string' ? type : (type?.[0] ?? '');
}

/** What a new member or item is at first: what is required, with what stands for it when it is left out. */
export function initialOf(schema: IFormSchema): Json {
  if (schema.const !== undefined || schema['x-fallback'] !== undefined) {
    return schema.const ?? schema['x-fallback'] ?? null;
  }
  if (schema.enum) {
    return schema.enum[0];
  }
  switch (typeOf(schema)) {
    case 'integer':
    case 'number':
      return Math.max(0, schema.minimum ?? 0);
    case 'boolean':
      return false;
    case 'array':
      return [];
    case 'object':
      return Object.fromEntries(
        (schema.required ?? []).map(name => [
          name,
          initialOf(schema.properties?.[name] ?? {})
        ])
      );
    default:
      return '';
  }
}

/** The schema as rjsf shall see it: what is added to a map has a value, and items are called as their list. */
export function forRjsf(schema: IFormSchema): IFormSchema {
  return mapped(schema, part => {
    const { additionalProperties: extra, items, title } = part;
    return {
      ...part,
      ...(extra &&
        typeOf(extra) !== 'object' && {
          additionalProperties: { ...extra, default: initialOf(extra) }
        }),
      ...(items && { items: { ...items, title: items.title ?? title } })
    };
  });
}

/** How each part of a schema is shown. */
export function uiOf(schema: IFormSchema): UiSchema {
  const ui: UiSchema = {};
  const widget = schema['x-widget'];
  if (widget !== undefined) {
    ui[OWN_FIELDS.has(widget) ? 'ui:field' : 'ui:widget'] = widget;
  }
  const fallback = schema['x-fallback'];
  if (fallback !== undefined) {
    ui['ui:options'] = { fallback };
    ui['ui:placeholder'] = textOf(fallback);
  }
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    ui[name] = uiOf(field);
  }
  if (schema['x-flat']) {
    ui['ui:flat'] = true;
  }
  for (const { then } of schema.allOf ?? []) {
    for (const [name, field] of Object.entries(then.properties ?? {})) {
      ui[name] = { ...(ui[name] as UiSchema), ...uiOf(field) };
    }
  }
  if (schema.items) {
    ui.items = uiOf(schema.items);
  }
  if (schema.additionalProperties) {
    ui.additionalProperties = uiOf(schema.additionalProperties);
  }
  return ui;
}

/**
 * A value without what a form has added and was not filled in: empty parts that were not there before.
 *
 * Parts that mean what they did are those of `before`, so that what shows them need not look into them.
 */
export function pruned(before: Json | undefined, after: unknown): Json {
  const value = filledIn(before, after);
  return before !== undefined && same(before, value) ? before : value;
}

function filledIn(before: Json | undefined, after: unknown): Json {
  if (isList(after)) {
    const items = isList(before) ? before : [];
    return after.map((each, index) => pruned(items[index], each));
  }
  if (!isObject(after)) {
    return (after ?? null) as Json;
  }
  const old: IJsonObject = isObject(before) ? before : {};
  const kept: [string, Json][] = [];
  for (const [name, each] of Object.entries(after) as [string, unknown][]) {
    const was = Object.prototype.hasOwnProperty.call(old, name)
      ? old[name]
      : undefined;
    const now = each === undefined ? undefined : pruned(was, each);
    const isEmpty =
      (isObject(now) && Object.keys(now).length === 0) ||
      (isList(now) && now.length === 0);
    if (now !== undefined && !(was === undefined && isEmpty)) {
      kept.push([name, now]);
    }
  }
  return Object.fromEntries(kept);
}
