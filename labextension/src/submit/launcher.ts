/**
 * Cards of templates in the launcher.
 */

import type { ILauncher } from '@jupyterlab/launcher';
import type { TranslationBundle } from '@jupyterlab/translation';
import { inLocale } from '../language';
import type { IJobListModel, IPaiClient } from '../tokens';
import { CommandIDs } from '../tokens';
import type { ITemplate } from '../types';

/** Cards at most: of a site with hundreds of templates the form shows the rest. */
const MOST = 12;

/** The arguments of a template's card; null for a document without content. */
export function cardOf(
  template: ITemplate,
  language: string
): Record<string, string | boolean> | null {
  const { name, filename, words } = template;
  if (name.startsWith('empty')) {
    return null;
  }
  const { title, about } = inLocale(words, language) ?? words.en;
  return { launcher: true, template: name, filename, title, about };
}

/** Add them when the backend first answers: reading them must not be what starts it. */
export function addTemplateCards(
  launcher: ILauncher,
  client: IPaiClient,
  jobs: IJobListModel,
  trans: TranslationBundle,
  language: string
): void {
  const add = async (): Promise<void> => {
    const { loaded, problem } = jobs.state;
    if (!loaded || problem) {
      return;
    }
    jobs.changed.disconnect(look);
    const templates = await client.templates();
    const cards = templates.map(each => cardOf(each, language));
    for (const args of cards.filter(each => each !== null).slice(0, MOST)) {
      const category = trans.__('PAI');
      launcher.add({ command: CommandIDs.newJob, args, category, rank: 10 });
    }
  };
  const look = (): void => {
    add().catch(() => {
      // The form lists them, too, and says why it cannot.
    });
  };
  jobs.changed.connect(look);
}
