/**
 * The dialogs that make and remove a reservation.
 */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { DialogForm } from '../dialog_form';
import { FormDialog } from '../form_dialog';
import { namesOf } from '../people/forms';
import type { IPaiClient } from '../tokens';
import type { INewReservation } from '../types';

/** The next full hour, as a control for times has it. */
function nextHour(after: number): string {
  const time = new Date(Math.ceil(Date.now() / 3600_000 + after) * 3600_000);
  const local = time.getTime() - time.getTimezoneOffset() * 60_000;
  return new Date(local).toISOString().slice(0, 16);
}

/** Asks for a reservation of GPUs of a virtual cluster. */
export class ReservationForm extends DialogForm {
  constructor(
    trans: TranslationBundle,
    private readonly _vc: string,
    gpuTypes: readonly string[]
  ) {
    super();
    this._name = this.named('$.name', this.addText(trans.__('Reserved for')));
    this._name.required = true;
    this._gpus = this.named('$.gpus', this.addNumber(trans.__('GPUs'), '1', 1));
    this._gpus.required = true;
    this._type = this.addSelect(
      trans.__('GPU type'),
      ['', ...gpuTypes],
      trans.__('any')
    );
    this._oneNode = this._addBox(trans.__('All in one node'));
    this._begins = this._addTime('$.begins', trans.__('From'), nextHour(0));
    this._ends = this._addTime('$.ends', trans.__('To'), nextHour(1));
    this._users = this.named(
      '$.users',
      this.addText(trans.__('Users, with commas; empty: all'))
    );
    this._groups = this.named(
      '$.groups',
      this.addText(trans.__('Groups, with commas'))
    );
    this._endOthers = this._addBox(
      trans.__('Stop jobs that hold the GPUs when it begins')
    );
  }

  /** What was typed. */
  getValue(): INewReservation {
    return {
      virtualCluster: this._vc,
      name: this._name.value,
      gpus: Number(this._gpus.value),
      gpuType: this._type.value,
      oneNode: this._oneNode.checked,
      begins: new Date(this._begins.value).toISOString(),
      ends: new Date(this._ends.value).toISOString(),
      users: namesOf(this._users.value),
      groups: namesOf(this._groups.value),
      endOthers: this._endOthers.checked
    };
  }

  private _addBox(label: string): HTMLInputElement {
    const box = this.add(label, document.createElement('input'));
    box.type = 'checkbox';
    return box;
  }

  private _addTime(path: string, label: string, value: string) {
    const input = this.named(path, this.addText(label));
    input.type = 'datetime-local';
    input.value = value;
    input.required = true;
    return input;
  }

  private readonly _begins: HTMLInputElement;
  private readonly _endOthers: HTMLInputElement;
  private readonly _ends: HTMLInputElement;
  private readonly _gpus: HTMLInputElement;
  private readonly _groups: HTMLInputElement;
  private readonly _name: HTMLInputElement;
  private readonly _oneNode: HTMLInputElement;
  private readonly _type: HTMLSelectElement;
  private readonly _users: HTMLInputElement;
}

/** Ask for a reservation, and make it. */
export async function reserve(
  client: IPaiClient,
  trans: TranslationBundle,
  vc: string,
  gpuTypes: readonly string[]
): Promise<void> {
  await FormDialog.ask({
    trans,
    title: trans.__('Reserve GPUs of %1', vc),
    form: new ReservationForm(trans, vc, gpuTypes),
    label: trans.__('Reserve'),
    change: made => client.reserve(made)
  });
}

/** Ask whether a reservation is to be removed, and remove it. Rejects with PaiError. */
export async function removeReservation(
  client: IPaiClient,
  trans: TranslationBundle,
  id: string,
  name: string
): Promise<void> {
  const answer = await showDialog({
    title: trans.__('Remove the reservation %1?', name),
    body: trans.__('Jobs that wait for its GPUs start then.'),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Keep') }),
      Dialog.warnButton({ label: trans.__('Remove') })
    ]
  });
  if (answer.button.accept) {
    await client.removeReservation(id);
  }
}
