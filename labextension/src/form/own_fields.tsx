/**
 * Fields that the types of a schema do not say: lines, and texts that may be numbers.
 */

import * as React from 'react';
import type { Json } from './paths';
import { textOf } from './paths';

/** What rjsf gives a field, as far as ours go by it. */
interface IFieldProps {
  readonly idSchema: { readonly $id: string };
  readonly schema: { readonly title?: string };
  readonly name: string;
  readonly formData?: Json;
  readonly onChange: (value: Json) => void;
}

/** Marks the schema of a member that was added to a map. Source: @rjsf/utils. */
const ADDED = '__additional_property';

/** A text of lines as a list of lines; blank lines at the end are still being typed. */
function Lines(props: IFieldProps): JSX.Element {
  const { idSchema, formData, onChange } = props;
  const items = Array.isArray(formData) ? (formData as Json[]) : [];
  const isText = items.every(
    each => typeof each === 'string' && !each.includes('\n')
  );
  const [typed, setTyped] = React.useState<string | null>(null);
  if (!isText) {
    return <Blocks {...props} />;
  }
  const shown = items.map(textOf).join('\n');
  const isCurrent = typed !== null && linesOf(typed).join('\n') === shown;
  return (
    <textarea
      aria-describedby={`${idSchema.$id}__description`}
      className="jp-mod-styled"
      id={idSchema.$id}
      onBlur={() => setTyped(null)}
      onChange={event => {
        setTyped(event.target.value);
        onChange(linesOf(event.target.value));
      }}
      rows={Math.min(12, Math.max(2, items.length + 1))}
      spellCheck={false}
      value={isCurrent ? typed : shown}
    />
  );
}

/** The lines of a text without those at its end that are empty. */
export function linesOf(text: string): string[] {
  const trimmed = text.replace(/\n+$/, '');
  return trimmed === '' ? [] : trimmed.split('\n');
}

/** Texts of which some have several lines, each in a field of its own. */
function Blocks(props: IFieldProps): JSX.Element {
  const { idSchema, schema, formData, onChange } = props;
  const items = formData as Json[];
  return (
    <div>
      {items.map((each, index) => (
        <textarea
          aria-label={`${schema.title ?? ''} ${index + 1}`}
          className="jp-mod-styled"
          id={index === 0 ? idSchema.$id : `${idSchema.$id}_${index}`}
          key={index}
          onChange={event =>
            onChange(
              items.map((was, i) => (i === index ? event.target.value : was))
            )
          }
          rows={Math.min(12, textOf(each).split('\n').length + 1)}
          spellCheck={false}
          value={textOf(each)}
        />
      ))}
    </div>
  );
}

/** A text, a number or a flag, as it is typed; a text that looks like a number stays one when it was. */
export function scalarOf(typed: string, was: Json | undefined): Json {
  if (typeof was === 'number' || typeof was === 'boolean' || was === '') {
    if (/^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?$/.test(typed)) {
      return Number(typed);
    }
    if (typed === 'true' || typed === 'false') {
      return typed === 'true';
    }
  }
  return typed;
}

function ScalarField(props: IFieldProps): JSX.Element {
  const { idSchema, formData, onChange, schema } = props;
  const isPlain = formData === null || typeof formData !== 'object';
  const [typed, setTyped] = React.useState<string | null>(null);
  const shown = isPlain ? String(formData ?? '') : JSON.stringify(formData);
  const isCurrent = typed !== null && scalarOf(typed, formData) === formData;
  return (
    <input
      aria-describedby={`${idSchema.$id}__description`}
      aria-label={ADDED in schema ? props.name : undefined}
      className="jp-mod-styled"
      disabled={!isPlain}
      id={idSchema.$id}
      onBlur={() => setTyped(null)}
      onChange={event => {
        setTyped(event.target.value);
        onChange(scalarOf(event.target.value, formData));
      }}
      spellCheck={false}
      value={isCurrent ? typed : shown}
    />
  );
}

/** One text, or a list of texts when there are several lines. */
function TextOrLines(props: IFieldProps): JSX.Element {
  const { formData, onChange } = props;
  const list = Array.isArray(formData) ? formData : [formData ?? ''];
  return (
    <Lines
      {...props}
      formData={list as Json[]}
      onChange={value => {
        const lines = value as string[];
        onChange(
          lines.length > 1 || Array.isArray(formData) ? lines : (lines[0] ?? '')
        );
      }}
    />
  );
}

/** Fields of ours, by `x-widget`. */
export const fields = {
  lines: Lines,
  scalar: ScalarField,
  'text-or-lines': TextOrLines
};
