/**
 * What the dialog about a group asks.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { DialogForm } from '../dialog_form';
import type { IGroupChange } from '../tokens';
import type { IUserGroup } from '../types';
import { namesOf } from './forms';

/** The group of all users. */
export const EVERYONE = 'default';

/** The group of all administrators, which nothing changes. */
export const ADMINS = 'admingroup';

/** What was typed about a group. */
export interface ITypedGroup {
  readonly name: string;
  /** What differs from before. */
  readonly change: IGroupChange;
  /** Whether members may use every virtual cluster from now on; the group of all users alone can have that. */
  readonly everything: boolean;
}

/** The grants as they were; empty where everything may be used. */
function grantsOf(group: IUserGroup | null) {
  const acls = group?.extension.acls;
  const isOpen = acls?.everything ?? false;
  // What its members manage they may use, and the list has that too: it is not to be granted a second time.
  const manages = acls?.manages ?? [];
  const usable = isOpen ? [] : (acls?.virtualClusters ?? []);
  return { use: usable.filter(each => !manages.includes(each)), manages };
}

/** Asks who is in a group and what it lets them use; `group` is null for one that is added. */
export class GroupForm extends DialogForm {
  constructor(
    trans: TranslationBundle,
    private readonly _group: IUserGroup | null,
    mayAdmin: boolean
  ) {
    super();
    this.addClass('jp-pai-People-form');
    const group = _group;
    const isEveryone = group?.groupname === EVERYONE;
    if (group === null) {
      this._name = this.named('$.groupname', this.addText(trans.__('Name')));
      this._name.required = true;
    }
    if (mayAdmin && !isEveryone) {
      this._description = this.addText(
        trans.__('Description'),
        group?.description
      );
      this._externalName = this.addText(
        trans.__('Name at the provider that signs users in'),
        group?.externalName
      );
      this._members = this.add(
        trans.__('Members, with commas'),
        document.createElement('textarea')
      );
      this._members.value = group?.members.join(', ') ?? '';
      this._members.rows = 3;
    }
    const { use, manages } = grantsOf(group);
    if (mayAdmin && isEveryone) {
      this._everything = this.add(
        trans.__('All virtual clusters'),
        document.createElement('input')
      );
      this._everything.type = 'checkbox';
      this._everything.checked = group.extension.acls.everything;
      this._everything.addEventListener('change', () => this._fit());
    }
    this._use = this.addText(
      trans.__('Virtual clusters, with commas'),
      use.join(', ')
    );
    if (mayAdmin) {
      this._manages = this.addText(
        trans.__('Virtual clusters that members manage, with commas'),
        manages.join(', ')
      );
    }
    this._fit();
  }

  /** What was typed, without what is as it was. */
  getValue(): ITypedGroup {
    const group = this._group;
    const { use, manages } = grantsOf(group);
    const wasOpen = group?.extension.acls.everything ?? false;
    const everything = this._everything?.checked ?? false;
    const before: IGroupChange = {
      description: group?.description ?? '',
      externalName: group?.externalName ?? '',
      members: group?.members ?? [],
      // Unlike an empty list, which opens nothing.
      virtualClusters: wasOpen ? undefined : use,
      manages
    };
    const typed: IGroupChange = {
      description: this._description?.value.trim(),
      externalName: this._externalName?.value.trim(),
      members: this._members && namesOf(this._members.value),
      virtualClusters: namesOf(this._use.value),
      manages: this._manages && namesOf(this._manages.value)
    };
    const differs = ([key, value]: [string, unknown]) =>
      value !== undefined &&
      JSON.stringify(value) !==
        JSON.stringify(before[key as keyof IGroupChange]);
    const change = everything
      ? {}
      : Object.fromEntries(Object.entries(typed).filter(differs));
    const name = group?.groupname ?? this._name?.value.trim() ?? '';
    return { name, change, everything };
  }

  /** Where everything may be used, there is nothing to choose. */
  private _fit(): void {
    const isOpen = this._everything?.checked ?? false;
    this._use.disabled = isOpen;
    if (this._manages) {
      this._manages.disabled = isOpen;
    }
  }

  private readonly _description?: HTMLInputElement;
  private readonly _everything?: HTMLInputElement;
  private readonly _externalName?: HTMLInputElement;
  private readonly _manages?: HTMLInputElement;
  private readonly _members?: HTMLTextAreaElement;
  private readonly _name?: HTMLInputElement;
  private readonly _use: HTMLInputElement;
}
