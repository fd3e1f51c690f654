/**
 * One page of the form, or one task role: each of its fields in a form of its own.
 *
 * rjsf compares and renders all fields of a form several times when one of them changes, and a key may not cost that.
 */

import { FormComponent } from '@jupyterlab/ui-components';
import type { RJSFSchema, ValidatorType } from '@rjsf/utils';
import * as React from 'react';
import type { IFormContext } from './fields';
import { Errors, templates, widgets } from './fields';
import { fields } from './own_fields';
import type { Json } from './paths';
import { isObject, memberOf } from './paths';
import type { IFormSchema } from './schema';
import { forRjsf, pruned, uiOf } from './schema';

/** Which schema of an `if` a value is; all other rules are the backend's to tell. */
function isOf(schema: unknown, value: unknown): boolean {
  const wanted = (schema as IFormSchema).properties ?? {};
  return Object.entries(wanted).every(
    ([name, part]) =>
      part.const === undefined ||
      (isObject(value) && value[name] === part.const)
  );
}

/** Says that all is well: the backend reads the document, and its faults are put beside the fields. */
const validator = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  toErrorList: () => [],
  isValid: isOf,
  rawValidation: () => ({})
} as unknown as ValidatorType;

/** What rjsf would fill in by itself: nothing. */
const NO_DEFAULTS = {
  arrayMinItems: { populate: 'never' },
  constAsDefaults: 'never',
  emptyObjectFields: 'skipDefaults'
} as const;

/** Faults as rjsf puts them beside fields: those of a place under `__errors`, those below it by their steps. */
export interface IErrors {
  __errors?: string[];
  [step: string]: IErrors | string[] | undefined;
}

/** A frame around a form that is not drawn: the fields of several forms stand in one grid. */
const Frameless = React.forwardRef((props: React.PropsWithChildren) => (
  <>{props.children}</>
));
Frameless.displayName = 'Frameless';

interface IFieldProps {
  readonly id: string;
  readonly name: string;
  readonly schema: IFormSchema;
  readonly isRequired: boolean;
  /** Undefined where the document does not have it. */
  readonly value: Json | undefined;
  readonly errors: IErrors | undefined;
  readonly context: IFormContext;
  readonly put: (name: string, value: Json | undefined) => void;
}

/** One field; rendered when one of its properties is another one. */
const PartField = React.memo((props: IFieldProps): JSX.Element => {
  const { id, name, schema, isRequired, value, errors, context, put } = props;
  const [shown, ui] = React.useMemo(() => {
    const required = isRequired ? [name] : [];
    const whole = { type: 'object', properties: { [name]: schema }, required };
    return [forRjsf(whole) as RJSFSchema, { ...uiOf(whole), 'ui:root': true }];
  }, [name, schema, isRequired]);
  const data = React.useMemo(
    () => (value === undefined ? {} : { [name]: value }),
    [name, value]
  );
  const extra = React.useMemo(() => ({ [name]: errors }), [name, errors]);
  return (
    <FormComponent
      experimental_defaultFormStateBehavior={NO_DEFAULTS}
      extraErrors={extra}
      fields={fields as never}
      formContext={context}
      formData={data}
      idPrefix={id}
      noHtml5Validate
      onChange={event => put(name, memberOf(event.formData, name))}
      schema={shown}
      showErrorList={false}
      tagName={Frameless}
      templates={templates as never}
      uiSchema={ui}
      validator={validator as never}
      widgets={widgets as never}
    />
  );
});
PartField.displayName = 'PartField';

/** One part of the value with its part of the schema. `set` gets the part as it was changed. */
export function Part(props: {
  readonly id: string;
  readonly schema: IFormSchema;
  readonly value: Json;
  readonly errors: IErrors;
  readonly context: IFormContext;
  readonly set: (value: Json) => void;
}): JSX.Element {
  const { id, schema, value, errors, context } = props;
  const latest = React.useRef(props);
  latest.current = props;
  const put = React.useCallback((name: string, made: Json | undefined) => {
    const { value: before, set } = latest.current;
    set(pruned(before, { ...(before as object), [name]: made }));
  }, []);
  return (
    <div
      className="jp-pai-Form-field"
      data-faulty={errors.__errors ? true : undefined}
      data-wide
    >
      <div className="jp-pai-Form-fields">
        {Object.entries(schema.properties ?? {}).map(([name, field]) => (
          <PartField
            context={context}
            errors={errors[name] as IErrors | undefined}
            id={id}
            isRequired={schema.required?.includes(name) ?? false}
            key={name}
            name={name}
            put={put}
            schema={field}
            value={memberOf(value, name)}
          />
        ))}
      </div>
      <Errors errors={errors.__errors} id={id} />
    </div>
  );
}
