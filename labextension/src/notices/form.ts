/**
 * What the dialog asks before messages are sent.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { DialogForm } from '../dialog_form';
import type { INewNotification } from '../tokens';
import type { JobNews, NotificationChannel } from '../types';
import { channelWord, CHANNELS, NEWS, newsWord, USUAL } from './words';

/** What a channel wants to know. */
interface IWants {
  readonly to: string;
  /** Null: its messages are not signed. */
  readonly secret: string | null;
}

function wantsOf(
  trans: TranslationBundle,
  channel: NotificationChannel
): IWants {
  switch (channel) {
    case 'mail':
      return {
        to: trans.__('Address (empty: that of your account)'),
        secret: null
      };
    case 'slack':
      return { to: trans.__('URL of the incoming webhook'), secret: null };
    case 'teams':
      return { to: trans.__('URL of the workflow'), secret: null };
    case 'feishu':
      return {
        to: trans.__('URL of the custom bot'),
        secret: trans.__('Secret of the bot (if it has one)')
      };
    case 'dingtalk':
      return {
        to: trans.__('URL of the custom robot'),
        secret: trans.__('Secret of the robot (if it has one)')
      };
    case 'webhook':
      return {
        to: trans.__('URL'),
        secret: trans.__('Secret that signs the messages (may be empty)')
      };
  }
}

/** Asks how messages come, and about what. */
export class NotificationForm extends DialogForm {
  constructor(private readonly _trans: TranslationBundle) {
    super();
    const trans = _trans;
    this.addClass('jp-pai-Notifications-form');
    this._channel = this.named('$.channel', this._addChannel());
    this._to = this.named('$.to', this.addText(''));
    this._to.maxLength = 2000;
    this._to.autocomplete = 'off';
    this._secret = this.named('$.secret', this.addText(''));
    this._secret.type = 'password';
    this._secret.maxLength = 200;
    this._secret.autocomplete = 'new-password';
    this._news = this._addNews();
    this._minutes = this.named(
      '$.waitedS',
      this.addNumber(trans.__('A long wait, in minutes'), '60', 1)
    );
    this._minutes.required = true;
    const about = document.createElement('p');
    about.textContent = trans.__(
      'URLs and secrets are stored encrypted and are never shown again. A document may ask for more messages about its own job.'
    );
    this.node.append(about);
    for (const control of [this._channel, this._news.get('waited')!]) {
      control.addEventListener('change', () => this._fit());
    }
    this._fit();
  }

  /** What was typed, of what the channel wants. */
  getValue(): INewNotification {
    const isSigned = wantsOf(this._trans, this._chosen).secret !== null;
    const news = NEWS.filter(each => this._news.get(each)?.checked);
    return {
      channel: this._chosen,
      to: this._to.value.trim(),
      secret: isSigned ? this._secret.value : '',
      news,
      waitedS: Math.floor(Number(this._minutes.value) || 60) * 60
    };
  }

  private get _chosen(): NotificationChannel {
    return this._channel.value as NotificationChannel;
  }

  private _addChannel(): HTMLSelectElement {
    const select = document.createElement('select');
    for (const channel of CHANNELS) {
      select.add(new Option(channelWord(this._trans, channel), channel));
    }
    return this.add(this._trans.__('Messages come by'), select);
  }

  private _addNews(): ReadonlyMap<JobNews, HTMLInputElement> {
    const group = document.createElement('fieldset');
    const legend = document.createElement('legend');
    legend.textContent = this._trans.__('News');
    group.append(legend);
    this.node.append(group);
    const boxes = NEWS.map(news => {
      const box = document.createElement('input');
      box.type = 'checkbox';
      box.checked = USUAL.includes(news);
      const line = document.createElement('label');
      line.append(box, newsWord(this._trans, news));
      group.append(line);
      return [news, box] as const;
    });
    return new Map(boxes);
  }

  /** Ask for what the channel wants. */
  private _fit(): void {
    const { to, secret } = wantsOf(this._trans, this._chosen);
    const isMail = this._chosen === 'mail';
    const type = isMail ? 'email' : 'url';
    this.relabel(this._to, to);
    if (this._to.type !== type) {
      this._to.type = type;
      this._to.value = '';
    }
    this._to.required = !isMail;
    this._to.pattern = isMail ? '.*' : 'https?://.+';
    this._to.title = isMail
      ? ''
      : this._trans.__('A URL with http:// or https://');
    this.relabel(this._secret, secret ?? '').hidden = secret === null;
    const isWaited = this._news.get('waited')!.checked;
    this._minutes.closest('label')!.hidden = !isWaited;
    this._minutes.disabled = !isWaited;
    // The dialog looks again whether all is valid.
    this.node.dispatchEvent(new Event('input', { bubbles: true }));
  }

  private readonly _channel: HTMLSelectElement;
  private readonly _minutes: HTMLInputElement;
  private readonly _news: ReadonlyMap<JobNews, HTMLInputElement>;
  private readonly _secret: HTMLInputElement;
  private readonly _to: HTMLInputElement;
}
