/**
 * How the form draws what its schema names: labels, frames, lists, maps, and fields that the types do not say.
 *
 * Given together and made once: rjsf mounts other inputs, and the focus is lost, when a template becomes another one.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import { closeIcon, moveDownIcon, moveUpIcon } from '@jupyterlab/ui-components';
import type {
  ArrayFieldTemplateProps,
  FieldTemplateProps,
  ObjectFieldTemplateProps,
  TemplatesType
} from '@rjsf/utils';
import * as React from 'react';
import { textOf } from './paths';
import type { IPickContext, IWidgetProps } from './pickers';
import { pickers } from './pickers';

/** What the parts of a form know of it. */
export interface IFormContext extends IPickContext {
  readonly trans: TranslationBundle;
}

/** Marks the schema of a member that was added to a map. Source: @rjsf/utils. */
const ADDED = '__additional_property';

function contextOf(props: { formContext?: unknown }): IFormContext {
  return props.formContext as IFormContext;
}

/** A button that is a picture. */
export function IconButton(props: {
  icon: LabIcon;
  label: string;
  disabled?: boolean;
  onClick: () => void;
}): JSX.Element {
  const { icon, label, disabled, onClick } = props;
  return (
    <button
      aria-label={label}
      className="jp-pai-Form-icon"
      disabled={disabled}
      onClick={onClick}
      title={label}
      type="button"
    >
      <icon.react tag="span" elementPosition="center" />
    </button>
  );
}

/** The faults of a field. */
export function Errors(props: {
  id: string;
  errors?: string[];
}): JSX.Element | null {
  const { id, errors } = props;
  return errors?.length ? (
    <ul className="jp-pai-Form-errors" id={`${id}__error`} role="alert">
      {errors.map(each => (
        <li key={each}>{each}</li>
      ))}
    </ul>
  ) : null;
}

/** The name of a member that was added to a map, and its button. */
function Added(props: FieldTemplateProps): JSX.Element {
  const { id, label, onKeyChange, onDropPropertyClick } = props;
  const { trans } = contextOf(props);
  return (
    <>
      <input
        aria-label={trans.__('Name of %1', label)}
        className="jp-pai-Form-key jp-mod-styled"
        defaultValue={label}
        id={`${id}-key`}
        key={label}
        onBlur={event => onKeyChange(event.target.value)}
      />
      <IconButton
        icon={closeIcon}
        label={trans.__('Remove %1', label)}
        onClick={onDropPropertyClick(label)}
      />
    </>
  );
}

function Field(props: FieldTemplateProps): JSX.Element {
  const { id, schema, uiSchema, label, rawErrors, required, children } = props;
  if (props.hidden) {
    return <div hidden>{children}</div>;
  }
  if (uiSchema?.['ui:root'] === true) {
    return children;
  }
  const isAdded = ADDED in schema;
  const isOwn = uiSchema?.['ui:field'] !== undefined;
  const isFrame =
    !isOwn && (schema.type === 'object' || schema.type === 'array');
  const isLabelled = !isFrame && !isAdded && schema.type !== 'boolean';
  const isWide =
    isFrame ||
    isAdded ||
    ['lines', 'textarea'].includes(
      String(uiSchema?.['ui:field'] ?? uiSchema?.['ui:widget'])
    );
  return (
    <div
      className="jp-pai-Form-field"
      data-added={isAdded || undefined}
      data-faulty={rawErrors?.length ? true : undefined}
      data-wide={isWide || undefined}
    >
      {isLabelled && (
        <label htmlFor={id}>
          {label}
          {required && <span aria-hidden="true"> *</span>}
        </label>
      )}
      {isAdded && <Added {...props} />}
      <div className="jp-pai-Form-input">{children}</div>
      {isLabelled && schema.description && (
        <p className="jp-pai-Form-help" id={`${id}__description`}>
          {schema.description}
        </p>
      )}
      <Errors id={id} errors={rawErrors} />
    </div>
  );
}

/** What an item of a list is called by its author. */
function nameIn(value: unknown): string | null {
  const { name, plugin, label } = (value ?? {}) as Record<string, unknown>;
  const found = [name, plugin, label].find(each => typeof each === 'string');
  return found || null;
}

function ObjectFields(props: ObjectFieldTemplateProps): JSX.Element {
  const { idSchema, title, schema, uiSchema, properties } = props;
  const { trans } = contextOf(props);
  const fields = properties.map(each => each.content);
  const add = schema.additionalProperties ? (
    <button
      className="jp-pai-Form-add jp-mod-styled"
      onClick={props.onAddClick(schema)}
      type="button"
    >
      {trans.__('Add: %1', title)}
    </button>
  ) : null;
  const ui = (uiSchema ?? {}) as Record<string, unknown>;
  if (ui['ui:root'] === true) {
    return <>{fields}</>;
  }
  if (ui['ui:flat'] === true) {
    return (
      <div className="jp-pai-Form-fields" data-wide={true}>
        {fields}
        {add}
      </div>
    );
  }
  return (
    <fieldset className="jp-pai-Form-frame" id={idSchema.$id}>
      {title && <legend>{nameIn(props.formData) ?? title}</legend>}
      {schema.description && (
        <p className="jp-pai-Form-help">{schema.description}</p>
      )}
      <div className="jp-pai-Form-fields">{fields}</div>
      {add}
    </fieldset>
  );
}

function ListFields(props: ArrayFieldTemplateProps): JSX.Element {
  const { idSchema, title, schema, items, onAddClick } = props;
  const { trans } = contextOf(props);
  return (
    <fieldset className="jp-pai-Form-frame" id={idSchema.$id}>
      {title && <legend>{title}</legend>}
      {schema.description && (
        <p className="jp-pai-Form-help">{schema.description}</p>
      )}
      {items.map(item => (
        <div className="jp-pai-Form-item" key={item.key}>
          {item.children}
          <div
            aria-label={trans.__('%1 number %2', title, item.index + 1)}
            className="jp-pai-Form-tools"
            role="group"
          >
            <IconButton
              disabled={!item.hasMoveUp}
              icon={moveUpIcon}
              label={trans.__('Move up')}
              onClick={item.onReorderClick(item.index, item.index - 1)}
            />
            <IconButton
              disabled={!item.hasMoveDown}
              icon={moveDownIcon}
              label={trans.__('Move down')}
              onClick={item.onReorderClick(item.index, item.index + 1)}
            />
            <IconButton
              icon={closeIcon}
              label={trans.__('Remove')}
              onClick={item.onDropIndexClick(item.index)}
            />
          </div>
        </div>
      ))}
      <button
        className="jp-pai-Form-add jp-mod-styled"
        onClick={onAddClick}
        type="button"
      >
        {trans.__('Add: %1', title)}
      </button>
    </fieldset>
  );
}

/** All templates of the form. */
export const templates: Partial<TemplatesType> = {
  FieldTemplate: Field,
  ObjectFieldTemplate: ObjectFields,
  ArrayFieldTemplate: ListFields
};

function Flag(props: IWidgetProps): JSX.Element {
  const { id, value, options, label, schema, onChange } = props;
  const checked = (value ?? options.fallback ?? false) === true;
  return (
    <>
      <label className="jp-pai-Form-flag">
        <input
          aria-describedby={
            schema.description ? `${id}__description` : undefined
          }
          checked={checked}
          id={id}
          onChange={event => onChange(event.target.checked)}
          type="checkbox"
        />
        <span>{label}</span>
      </label>
      {schema.description && (
        <p className="jp-pai-Form-help" id={`${id}__description`}>
          {schema.description}
        </p>
      )}
    </>
  );
}

/** A number, or null, which switches the rule off; an empty field leaves it out. */
function Count(props: IWidgetProps): JSX.Element {
  const { id, value, label, onChange, options, schema } = props;
  const { trans } = contextOf(props);
  return (
    <div className="jp-pai-Form-path">
      <input
        aria-describedby={`${id}__description`}
        className="jp-mod-styled"
        disabled={value === null}
        id={id}
        min={schema.minimum}
        onChange={event =>
          onChange(
            event.target.value === '' ? undefined : Number(event.target.value)
          )
        }
        placeholder={textOf(options.fallback)}
        type="number"
        value={value === null || value === undefined ? '' : Number(value)}
      />
      <label className="jp-pai-Form-flag">
        <input
          aria-label={trans.__('Switch off: %1', label)}
          checked={value === null}
          id={`${id}-off`}
          onChange={event => onChange(event.target.checked ? null : undefined)}
          type="checkbox"
        />
        <span>{trans.__('off')}</span>
      </label>
    </div>
  );
}

/** A value that is written and never shown: it is not in the page, not even hidden. */
function Secret(props: IWidgetProps): JSX.Element {
  const { id, value, label, onChange } = props;
  const { trans } = contextOf(props);
  const [typed, setTyped] = React.useState('');
  return (
    <input
      aria-label={label}
      autoComplete="new-password"
      className="jp-mod-styled"
      id={id}
      onBlur={() => setTyped('')}
      onChange={event => {
        setTyped(event.target.value);
        onChange(event.target.value);
      }}
      placeholder={
        textOf(value) === '' ? undefined : trans.__('set; type to replace it')
      }
      spellCheck={false}
      type="password"
      value={typed}
    />
  );
}

/** Widgets of ours, by rjsf's name for a type or by `x-widget`. */
export const widgets = {
  CheckboxWidget: Flag,
  count: Count,
  secret: Secret,
  ...pickers
};
