/**
 * What the dialogs about users ask.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { DialogForm } from '../dialog_form';
import type { IUserRights } from '../tokens';
import type { IUser } from '../types';

/** The names of a text with commas. */
export function namesOf(text: string): string[] {
  const names = text.split(',').map(each => each.trim());
  return names.filter(each => each !== '');
}

/** A password of 96 random bits, in letters that a mail does not change. */
export function newPassword(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll('+', '-').replaceAll('/', '_');
}

/** Asks for what a user may do; `user` is null for one who is added. */
export class UserForm extends DialogForm {
  constructor(trans: TranslationBundle, user: IUser | null, mayAdmin: boolean) {
    super();
    this.addClass('jp-pai-People-form');
    this._user = user;
    this._mayAdmin = mayAdmin;
    this._name = user ? null : this.addText(trans.__('Name'));
    if (this._name) {
      this._name.required = true;
    }
    if (mayAdmin) {
      this._email = this.addText(trans.__('E-mail'), user?.email);
      this._admin = this.add(
        trans.__('Administrator'),
        document.createElement('input')
      );
      this._admin.type = 'checkbox';
      this._admin.checked = user?.admin ?? false;
      // The first is the group of all.
      const groups = user?.grouplist.slice(1) ?? [];
      this._groups = this.addText(
        trans.__('Groups, with commas'),
        groups.join(', ')
      );
    }
    this._use = this.addText(
      trans.__('Virtual clusters of their own, with commas'),
      user?.own.use.join(', ')
    );
    if (mayAdmin) {
      this._manages = this.addText(
        trans.__('Virtual clusters that they manage, with commas'),
        user?.own.manages.join(', ')
      );
    }
  }

  /** What was typed: of a user who is there, what differs from what was. */
  getValue(): { readonly name: string; readonly rights: IUserRights } {
    const user = this._user;
    const typed: IUserRights = {
      virtualCluster: namesOf(this._use.value),
      ...(this._mayAdmin && {
        email: this._email?.value.trim(),
        admin: this._admin?.checked,
        grouplist: namesOf(this._groups?.value ?? ''),
        manages: namesOf(this._manages?.value ?? '')
      })
    };
    const before: IUserRights = {
      virtualCluster: user?.own.use ?? [],
      email: user?.email ?? '',
      admin: user?.admin ?? false,
      grouplist: user?.grouplist.slice(1) ?? [],
      manages: user?.own.manages ?? []
    };
    const differs = ([key, value]: [string, unknown]) =>
      JSON.stringify(value) !==
      JSON.stringify(before[key as keyof IUserRights]);
    const rights = Object.fromEntries(Object.entries(typed).filter(differs));
    return { name: user?.username ?? this._name?.value.trim() ?? '', rights };
  }

  private readonly _user: IUser | null;
  private readonly _mayAdmin: boolean;
  private readonly _name: HTMLInputElement | null;
  private readonly _email?: HTMLInputElement;
  private readonly _admin?: HTMLInputElement;
  private readonly _groups?: HTMLInputElement;
  private readonly _use: HTMLInputElement;
  private readonly _manages?: HTMLInputElement;
}

/** Asks who gets what a removed user leaves. */
export class HeirForm extends DialogForm {
  constructor(trans: TranslationBundle, facts: string, others: string[]) {
    super();
    const told = document.createElement('p');
    told.textContent = facts;
    this.node.append(told);
    this._heir = this.addSelect(
      trans.__('Workspace names, templates and drafts go to'),
      ['', ...others],
      trans.__('no user: they end')
    );
  }

  /** Empty: no user. */
  getValue(): string {
    return this._heir.value;
  }

  private readonly _heir: HTMLSelectElement;
}
