/**
 * The form of the rules of a virtual cluster.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { DialogForm } from '../dialog_form';
import { namesOf } from '../people/forms';
import type { IVcRules } from '../types';

type Rules = IVcRules['rules'];

const HOUR = 3600;
const PRIORITIES: NonNullable<Rules['priorities']> = [
  'crit',
  'prod',
  'test',
  'oppo'
];

/** The names in a text; of an empty one no rule, unless the rule was to allow none. */
function listOf(
  { value }: HTMLInputElement,
  before: readonly string[] | null
): readonly string[] | null {
  const names = namesOf(value);
  return names.length > 0 || before?.length === 0 ? names : null;
}

/** Asks for rules; what is left empty is no rule. */
export class RulesForm extends DialogForm {
  constructor(
    trans: TranslationBundle,
    private readonly _found: IVcRules
  ) {
    super();
    const { rules, fromConfiguration } = _found;
    const number = (
      name: keyof IVcRules['inForce'],
      label: string,
      scale = 1
    ) => {
      const value = rules[name];
      const text = value === null ? '' : String(value / scale);
      const isFixed = fromConfiguration.includes(name);
      const said = isFixed
        ? trans.__('%1 (the configuration of the backend sets it)', label)
        : label;
      const input = this.named(`$.${name}`, this.addNumber(said, text, 0));
      input.step = scale === 1 ? '1' : 'any';
      input.disabled = isFixed;
      return input;
    };
    const list = (
      name: 'gpuTypes' | 'images',
      label: string
    ): HTMLInputElement =>
      this.named(`$.${name}`, this.addText(label, rules[name]?.join(', ')));
    this._gpus = number('mostGpusPerUser', trans.__('GPUs of each user'));
    this._jobs = number('mostJobsPerUser', trans.__('Jobs of each user'));
    this._run = number('longestRunS', trans.__('Longest run, in hours'), HOUR);
    this._types = list('gpuTypes', trans.__('GPU types, with commas'));
    this._images = list('images', trans.__('Patterns of images, with commas'));
    for (const name of PRIORITIES) {
      const box = this.add(
        trans.__('Priority %1', name),
        document.createElement('input')
      );
      box.type = 'checkbox';
      box.checked = rules.priorities?.includes(name) ?? true;
      this._priorities.set(name, box);
    }
    const below = rules.idleBelowPercent;
    this._below = this.addNumber(
      trans.__('GPUs are idle below this percentage'),
      below === null ? '' : String(below),
      0
    );
    this._below.max = '100';
    this._below.step = 'any';
    this._for = this.addNumber(
      trans.__('for so many hours'),
      rules.idleForS === null ? '' : String(rules.idleForS / HOUR),
      0
    );
    this._for.step = 'any';
    this._stops = this.add(
      trans.__('Stop such jobs after a warning'),
      document.createElement('input')
    );
    this._stops.type = 'checkbox';
    this._stops.checked = rules.idleStops;
  }

  /** What was typed, without what is as it was. */
  getValue(): Partial<Rules> {
    const value = ({ value, disabled }: HTMLInputElement, before: unknown) =>
      disabled ? before : value === '' ? null : Number(value);
    const hours = (input: HTMLInputElement, before: number | null) => {
      const given = value(input, before);
      return input.disabled || given === null
        ? given
        : Math.round(Number(given) * HOUR);
    };
    const before = this._found.rules;
    const chosen = PRIORITIES.filter(
      name => this._priorities.get(name)!.checked
    );
    const typed = {
      mostGpusPerUser: value(this._gpus, before.mostGpusPerUser),
      mostJobsPerUser: value(this._jobs, before.mostJobsPerUser),
      longestRunS: hours(this._run, before.longestRunS),
      gpuTypes: listOf(this._types, before.gpuTypes),
      images: listOf(this._images, before.images),
      priorities: chosen.length === PRIORITIES.length ? null : chosen,
      idleBelowPercent: value(this._below, before.idleBelowPercent),
      idleForS: hours(this._for, before.idleForS),
      idleStops: this._stops.checked
    };
    const differs = ([name, now]: [string, unknown]) =>
      JSON.stringify(now) !== JSON.stringify(before[name as keyof Rules]);
    return Object.fromEntries(Object.entries(typed).filter(differs));
  }

  private readonly _below: HTMLInputElement;
  private readonly _for: HTMLInputElement;
  private readonly _gpus: HTMLInputElement;
  private readonly _images: HTMLInputElement;
  private readonly _jobs: HTMLInputElement;
  private readonly _priorities = new Map<string, HTMLInputElement>();
  private readonly _run: HTMLInputElement;
  private readonly _stops: HTMLInputElement;
  private readonly _types: HTMLInputElement;
}
