/**
 * Words for where messages go and what they are about.
 *
 * One literal call for each word, so that the catalogue can be checked for completeness.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { INotification, JobNews, NotificationChannel } from '../types';
import { duration, timeText } from '../words';

/** All channels, the one that needs least first. */
export const CHANNELS: readonly NotificationChannel[] = [
  'mail',
  'slack',
  'teams',
  'feishu',
  'dingtalk',
  'webhook'
];

/** What can be chosen, in the order of a job's life. */
export const NEWS: readonly JobNews[] = [
  'started',
  'waited',
  'succeeded',
  'failed',
  'stopped',
  'retried',
  'preempted',
  'kept',
  'idle',
  'gpus-idle',
  'budget'
];

/** What the backend takes where nothing is chosen. */
export const USUAL: readonly JobNews[] = [
  'succeeded',
  'failed',
  'preempted',
  'kept',
  'idle',
  'gpus-idle',
  'budget'
];

/** How messages come. */
export function channelWord(
  trans: TranslationBundle,
  channel: NotificationChannel
): string {
  switch (channel) {
    case 'mail':
      return trans.__('Mail');
    case 'slack':
      return trans.__('Slack');
    case 'teams':
      return trans.__('Teams');
    case 'feishu':
      return trans.__('Feishu');
    case 'dingtalk':
      return trans.__('DingTalk');
    case 'webhook':
      return trans.__('Webhook');
  }
}

/** What has happened to a job. */
export function newsWord(trans: TranslationBundle, news: JobNews): string {
  switch (news) {
    case 'started':
      return trans.__('Has started');
    case 'waited':
      return trans.__('Has started after a long wait');
    case 'succeeded':
      return trans.__('Succeeded');
    case 'failed':
      return trans.__('Failed');
    case 'stopped':
      return trans.__('Stopped');
    case 'retried':
      return trans.__('Failed and runs again');
    case 'preempted':
      return trans.__('Preempted');
    case 'kept':
      return trans.__('Kept for debugging');
    case 'idle':
      return trans.__('Stops soon because it is not used');
    case 'gpus-idle':
      return trans.__('GPUs are idle');
    case 'budget':
      return trans.__('A budget is nearly used, or used up');
    case 'test':
      return trans.__('Test');
  }
}

/** On which news a message is sent. */
export function newsText(
  trans: TranslationBundle,
  { news, waitedS }: INotification
): string {
  const words = NEWS.filter(each => news.includes(each)).map(each =>
    each === 'waited'
      ? trans.__(
          'Has started after a wait of %1 or longer',
          duration(trans, waitedS * 1000)
        )
      : newsWord(trans, each)
  );
  return words.join(', ') || trans.__('What documents ask for');
}

/** What became of the last message. */
export function lastText(
  trans: TranslationBundle,
  { trouble, sentAt, triedAt }: INotification
): string {
  if (trouble) {
    return trans.__('%1 – did not arrive: %2', timeText(triedAt), trouble);
  }
  return sentAt ? trans.__('%1 – arrived', timeText(sentAt)) : '';
}

/** Where messages go, which names a notification. */
export function placeText(
  trans: TranslationBundle,
  { channel, place }: INotification
): string {
  return trans.__('%1 (%2)', place, channelWord(trans, channel));
}
