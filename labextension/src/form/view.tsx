/**
 * The form of a document: its pages, one at a time, and of its task roles one at a time.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { ProblemBox } from '../components';
import type { IFault } from '../types';
import { inWords } from '../worded';
import type { IFormContext } from './fields';
import type { FormModel } from './model';
import { Pages } from './pages';
import type { IErrors } from './part';
import { Part } from './part';
import type { Json, Path } from './paths';
import { pathOf, same, valueAt, withValue } from './paths';
import { gpusOf } from './pickers';
import { rolesOf, RoleStrip, withRoles } from './roles';
import type { IFormSchema } from './schema';
import { inLanguage, ofSection, sectionOf } from './schema';
import { swapped } from './twin';

const ROLES = 'roles';

/** Faults as rjsf puts them beside fields: of those below a path. */
export function errorsBelow(faults: readonly IFault[], root: Path): IErrors {
  const errors: IErrors = {};
  for (const fault of faults) {
    const path = pathOf(fault.path);
    if (!root.every((step, place) => path[place] === step)) {
      continue;
    }
    let here = errors;
    for (const step of path.slice(root.length)) {
      here = (here[step] ??= {}) as IErrors;
    }
    const text = fault.hint ? `${fault.message}. ${fault.hint}` : fault.message;
    (here.__errors ??= []).push(text);
  }
  return errors;
}

/** What the form needs beside its model. */
export interface IFormProps {
  readonly model: FormModel;
  readonly trans: TranslationBundle;
  /** The language of the words, as catalogues call it. */
  readonly language: string;
  /** Begins the names of inputs, which are one of a kind in the whole page. */
  readonly id: string;
  readonly context: Omit<IFormContext, 'trans' | 'use'>;
  /** Show the place of a field in the text. */
  readonly reveal: (path: Path) => void;
}

function Notes(props: IFormProps): JSX.Element | null {
  const { model, trans } = props;
  const { trouble, problem } = model.state;
  const words = {
    unreadable: trans.__(
      'The text cannot be read as it is. The form follows when it can.'
    ),
    large: trans.__('The document is too large for a form. Change it as text.'),
    refused: trans.__(
      'This change would alter other parts of the text. Make it in the text.'
    )
  };
  return (
    <>
      {trouble && (
        <p className="jp-pai-Note" data-kind="warning" role="note">
          {words[trouble]}
        </p>
      )}
      {problem && <ProblemBox problem={problem} trans={trans} />}
    </>
  );
}

/** The value as it was before, while a new one means the same: what is given it need not render again. */
function useSame<T extends Json>(value: T): T {
  const kept = React.useRef(value);
  if (!same(kept.current, value)) {
    kept.current = value;
  }
  return kept.current;
}

/** The roles of the document, and the fields of one. */
function Roles(
  props: IFormProps & {
    value: Json;
    schema: IFormSchema;
    context: IFormContext;
    /** Takes the path of the role that is shown. */
    shown: React.MutableRefObject<Path>;
  }
): JSX.Element {
  const { model, trans, value, schema, id, shown } = props;
  const [chosen, select] = React.useState(0);
  const roles = rolesOf(value);
  const { pointed } = model.state;
  React.useEffect(() => {
    const found = roles.findIndex(role => role.step === pointed?.[1]);
    if (pointed?.[0] === 'taskRoles' && found >= 0) {
      select(found);
    }
  }, [pointed]);
  const index = Math.min(chosen, roles.length - 1);
  const role = roles[index];
  const about = schema.properties?.taskRoles ?? {};
  const fieldsOfRole = about.items ?? about.additionalProperties ?? {};
  const root: Path = ['taskRoles', role?.step ?? 0];
  shown.current = root;
  const gpus = gpusOf(role?.value);
  const context = React.useMemo(
    () => ({ ...props.context, gpus }),
    [props.context, gpus]
  );
  const { faults: told } = model.state;
  const faults = React.useMemo(
    () => told.map(fault => inWords(trans, fault)),
    [told, trans]
  );
  const faulty = useSame(
    faults
      .map(fault => pathOf(fault.path)[1])
      .filter(step => step !== undefined)
  );
  const strip = useSame(roles.map(({ name, step }) => ({ name, step })));
  const change = React.useCallback(
    (make: (value: Json) => Json) => model.set(make(model.state.value)),
    [model]
  );
  const swap = React.useCallback(
    (place: number) => {
      const path = ['taskRoles'];
      model.swap(path, place, swapped(model.state.value, path, place));
    },
    [model]
  );
  const errors = React.useMemo(
    () => errorsBelow(faults, root),
    [faults, role?.step]
  );
  return (
    <>
      <RoleStrip
        change={change}
        faulty={faulty}
        index={index}
        roles={strip}
        schema={fieldsOfRole}
        select={select}
        swap={swap}
        trans={trans}
      />
      {role && typeof role.step === 'string' && (
        <div className="jp-pai-Form-field">
          <label htmlFor={`${id}-role-name`}>{trans.__('Name')}</label>
          <input
            className="jp-mod-styled"
            defaultValue={role.name}
            id={`${id}-role-name`}
            key={role.name}
            onBlur={event => {
              const name = event.target.value;
              if (
                name !== role.name &&
                !roles.some(each => each.name === name)
              ) {
                model.set(
                  withRoles(
                    value,
                    roles.map(each =>
                      each === role ? { ...each, name } : each
                    )
                  )
                );
              }
            }}
          />
        </div>
      )}
      {role && (
        <Part
          context={context}
          errors={errors}
          id={`${id}-role`}
          schema={fieldsOfRole}
          set={changed => model.set(withValue(value, root, changed))}
          value={valueAt(value, root) ?? null}
        />
      )}
    </>
  );
}

/** The form as a function of its model. */
export function FormView(props: IFormProps): JSX.Element {
  const { model, trans, language, id } = props;
  const { value, schema: told, faults, use, pointed } = model.state;
  const body = React.useRef<HTMLDivElement>(null);
  const role = React.useRef<Path>([]);
  const [page, show] = React.useState('basics');
  const schema = React.useMemo(
    () => told && inLanguage(told, language),
    [told, language]
  );
  const part = React.useMemo(
    () => schema && ofSection(schema, page),
    [schema, page]
  );
  const errors = React.useMemo(
    () =>
      errorsBelow(
        faults.map(fault => inWords(trans, fault)),
        []
      ),
    [faults, trans]
  );
  const context = React.useMemo(
    () => ({ ...props.context, trans, use }),
    [props.context, trans, use]
  );
  const faulty = React.useMemo(
    () =>
      new Set(
        faults.map(({ path }) => sectionOf(schema ?? undefined, pathOf(path)))
      ),
    [faults, schema]
  );
  React.useEffect(() => {
    const section = schema && pointed && sectionOf(schema, pointed);
    if (section) {
      show(section);
    }
  }, [pointed]);
  React.useEffect(() => markField(body.current, id, pointed), [pointed, page]);
  if (value === null || !schema || !part) {
    return <Notes {...props} />;
  }
  return (
    <>
      <Pages
        faulty={faulty}
        page={page}
        schema={schema}
        show={show}
        trans={trans}
      />
      <Notes {...props} />
      <div
        className="jp-pai-Form-page"
        onFocus={event =>
          revealOf(event.target, id, value, role.current, props.reveal)
        }
        ref={body}
        role="tabpanel"
        tabIndex={-1}
      >
        {page === ROLES ? (
          <Roles
            {...props}
            context={context}
            schema={schema}
            shown={role}
            value={value}
          />
        ) : (
          <Part
            context={context}
            errors={errors}
            id={`${id}-${page}`}
            key={page}
            schema={part}
            set={changed => model.set(changed)}
            value={value}
          />
        )}
      </div>
    </>
  );
}

/** Tell the place of the field that has the focus. Its id is made of the steps to it, below the role that is shown. */
function revealOf(
  target: EventTarget,
  id: string,
  value: Json,
  role: Path,
  reveal: (path: Path) => void
): void {
  const [prefix, ...steps] = (target as HTMLElement).id.split('_');
  if (!prefix.startsWith(id) || steps.length === 0) {
    return;
  }
  const below = prefix === `${id}-role` ? role : [];
  const path = [
    ...below,
    ...steps.map(step => (/^\d+$/.test(step) ? Number(step) : step))
  ];
  if (valueAt(value, path) !== undefined) {
    reveal(path);
  }
}

/** Mark the field that the cursor of the text stands at, or the nearest one around it, and no other. */
function markField(
  body: HTMLElement | null,
  id: string,
  pointed: Path | null
): void {
  const marked = body?.querySelectorAll('.jp-pai-Form-field[data-pointed]');
  marked?.forEach(each => each.removeAttribute('data-pointed'));
  const steps = pointed?.[0] === 'taskRoles' ? pointed.slice(2) : pointed;
  for (let length = steps?.length ?? 0; body && length > 0; length--) {
    const ending = `_${steps!.slice(0, length).join('_')}`;
    const found = [...body.querySelectorAll('[id]')].find(
      each => each.id.startsWith(id) && each.id === stem(each.id) + ending
    );
    const field = found?.closest('.jp-pai-Form-field');
    if (field) {
      field.setAttribute('data-pointed', 'true');
      field.scrollIntoView({ block: 'nearest' });
      return;
    }
  }
}

/** The beginning of a field's id, before the steps to it. */
function stem(id: string): string {
  return id.split('_')[0];
}
