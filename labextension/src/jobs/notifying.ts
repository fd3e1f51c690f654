/**
 * What of the user's jobs is told, wherever they were submitted: by a toast, the bell, and if wanted the desktop.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification as Toast } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { PaiError } from '../problem';
import { CommandIDs, DOMAIN, IJobListModel, IPaiClient } from '../tokens';
import type { IJobDetail, IJobEvent } from '../types';
import { exitWords } from '../worded';

/** What is told, each a setting. */
export type Occasion = 'start' | 'end' | 'failure' | 'preemption' | 'kept';

/** What an event is an occasion of; null for one that is not told. */
export function occasionOf({ type, payload }: IJobEvent): Occasion | null {
  switch (type) {
    case 'job.state':
      return payload.phase === 'running' && payload.state === 'RUNNING'
        ? 'start'
        : null;
    case 'job.exit':
      return payload.state === 'FAILED' ? 'failure' : 'end';
    case 'task.kept':
      return 'kept';
    case 'task.state': {
      const exit = payload.exit as { reason?: string } | null;
      return exit?.reason === 'preempted' ? 'preemption' : null;
    }
    default:
      return null;
  }
}

/** What is said of a job. */
export function occasionWords(
  trans: TranslationBundle,
  occasion: Occasion,
  job: Pick<IJobDetail, 'name' | 'exit'>
): string {
  const { name } = job;
  switch (occasion) {
    case 'start':
      return trans.__('%1 runs.', name);
    case 'end':
      return trans.__('%1 has ended.', name);
    case 'failure':
      return trans.__(
        '%1 has failed: %2',
        name,
        job.exit ? exitWords(trans, job.exit).what : ''
      );
    case 'preemption':
      return trans.__('%1 was preempted by another job.', name);
    case 'kept':
      return trans.__('%1 has failed and is kept for debugging.', name);
  }
}

const KINDS = {
  start: 'info',
  end: 'success',
  failure: 'error',
  preemption: 'warning',
  kept: 'warning'
} as const;

/** Tells of occasions that the settings want. */
export class Notifier {
  constructor(private readonly _options: Notifier.IOptions) {}

  /** Tell of an event of the user's own job, once for each attempt. Never rejects. */
  async hear(event: IJobEvent): Promise<void> {
    if (event.type === 'job.retry' || event.type === 'job.restart-requested') {
      this._told.delete(event.job);
      return;
    }
    const { client, trans, wants, open } = this._options;
    const occasion = occasionOf(event);
    const told = this._told.get(event.job) ?? new Set<Occasion>();
    if (occasion === null || told.has(occasion) || !wants(occasion)) {
      return;
    }
    this._told.set(event.job, told.add(occasion));
    try {
      this._user ??= client.use().then(({ user }) => user);
      const [job, user] = await Promise.all([
        client.job(event.job),
        this._user
      ]);
      if (job.username !== user) {
        return; // administrators hear of all jobs
      }
      const words = occasionWords(trans, occasion, job);
      const callback = () => open(job.id);
      Toast.emit(words, KINDS[occasion], {
        autoClose: 5000,
        actions: [{ label: trans.__('Open'), callback }]
      });
      if (wants('desktop') && this._options.desktop) {
        this._options.desktop(words, callback);
      }
    } catch (reason) {
      if (!(reason instanceof PaiError)) {
        throw reason;
      }
      // The job is gone, or the backend away: the list says so.
      this._user = null;
    }
  }

  /** Occasions that were told, by job. */
  private readonly _told = new Map<string, Set<Occasion>>();
  private _user: Promise<string> | null = null;
}

/** Options of {@link Notifier}. */
export namespace Notifier {
  /** What it needs. */
  export interface IOptions {
    readonly client: IPaiClient;
    readonly trans: TranslationBundle;
    /** Whether a setting is on. */
    readonly wants: (setting: Occasion | 'desktop') => boolean;
    /** Show the page of a job. */
    readonly open: (job: string) => void;
    /** Show words on the desktop; null where the browser cannot. */
    readonly desktop: ((words: string, open: () => void) => void) | null;
  }
}

/** A notification of the browser; it asks for permission the first time. */
async function onDesktop(words: string, open: () => void): Promise<void> {
  if ((await Notification.requestPermission()) === 'granted') {
    new Notification('PAI', { body: words }).onclick = open;
  }
}

const ID = 'jupyter-pai:notifications';

/** Tells of the user's jobs as the settings say. */
export const notificationsPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Tells when PAI jobs start, end, fail or are preempted.',
  autoStart: true,
  requires: [IPaiClient, IJobListModel],
  optional: [ISettingRegistry, ITranslator],
  activate: async (
    app: JupyterFrontEnd,
    client: IPaiClient,
    jobs: IJobListModel,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): Promise<void> => {
    const settings = await registry?.load(ID);
    const notifier = new Notifier({
      client,
      trans: (translator ?? nullTranslator).load(DOMAIN),
      wants: setting => settings?.get(setting).composite === true,
      open: job => void app.commands.execute(CommandIDs.openJob, { job }),
      desktop:
        typeof Notification === 'undefined'
          ? null
          : (words, open) => void onDesktop(words, open)
    });
    jobs.happened.connect((_, event) => void notifier.hear(event));
  }
};
