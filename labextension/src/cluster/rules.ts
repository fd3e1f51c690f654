/**
 * The rules of a virtual cluster in a dialog: shown to who may use it, changed by who may change them.
 */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { FormDialog } from '../form_dialog';
import type { IPaiClient } from '../tokens';
import type { IVcRules } from '../types';
import { RulesForm } from './rules_form';

const UNITS: readonly [string, number][] = [
  ['d', 86400],
  ['h', 3600],
  ['m', 60],
  ['s', 1]
];

/** Seconds as the settings and `pai` write them: 9000 is `2h30m`. */
export function lengthText(seconds: number): string {
  let left = seconds;
  return UNITS.map(([unit, size]) => {
    const count = Math.floor(left / size);
    left -= count * size;
    return count > 0 ? `${count}${unit}` : '';
  }).join('');
}

/** What jobs there may do, each rule with its words. */
export function rulesText(
  trans: TranslationBundle,
  found: IVcRules
): [string, string][] {
  const { rules, inForce, fromConfiguration } = found;
  const limit = (
    name: keyof IVcRules['inForce'],
    shown: (value: number) => string = String
  ) => {
    const value = inForce[name];
    const text = value === null ? trans.__('no limit') : shown(value);
    return fromConfiguration.includes(name)
      ? trans.__('%1, by the configuration of the backend', text)
      : text;
  };
  const list = (names: readonly string[] | null) =>
    names === null
      ? trans.__('all')
      : names.join(', ') || trans.__('none allowed');
  return [
    [trans.__('GPUs of each user'), limit('mostGpusPerUser')],
    [trans.__('Jobs of each user'), limit('mostJobsPerUser')],
    [trans.__('Longest run'), limit('longestRunS', lengthText)],
    [trans.__('GPU types'), list(rules.gpuTypes)],
    [trans.__('Images'), list(rules.images)],
    [trans.__('Priorities'), list(rules.priorities)],
    [trans.__('Idle GPUs'), idleText(trans, rules)]
  ];
}

function idleText(trans: TranslationBundle, rules: IVcRules['rules']): string {
  const { idleBelowPercent: below, idleForS: time, idleStops } = rules;
  if (below === null || time === null) {
    return trans.__('no rule');
  }
  return idleStops
    ? trans.__(
        'jobs whose GPUs work less than %1 % for %2 are stopped after a warning',
        below,
        lengthText(time)
      )
    : trans.__(
        'owners of jobs whose GPUs work less than %1 % for %2 are warned',
        below,
        lengthText(time)
      );
}

function bodyOf(trans: TranslationBundle, found: IVcRules): Widget {
  const list = document.createElement('dl');
  for (const [name, value] of rulesText(trans, found)) {
    const term = document.createElement('dt');
    term.textContent = name;
    const said = document.createElement('dd');
    said.textContent = value;
    list.append(term, said);
  }
  return new Widget({ node: list });
}

/** Show the rules; who may change them gets a form. Rejects with PaiError when they cannot be read. */
export async function showRules(
  client: IPaiClient,
  trans: TranslationBundle,
  vc: string
): Promise<void> {
  const found = await client.vcRules(vc);
  const title = trans.__('Rules of %1', vc);
  if (!found.mayChange) {
    await showDialog({
      title,
      body: bodyOf(trans, found),
      buttons: [Dialog.okButton({ label: trans.__('Close') })]
    });
    return;
  }
  await FormDialog.ask({
    trans,
    title,
    form: new RulesForm(trans, found),
    label: trans.__('Save'),
    change: async change => {
      if (Object.keys(change).length > 0) {
        await client.changeVcRules(vc, change);
      }
    }
  });
}
