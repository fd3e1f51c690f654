/**
 * The plugin of sweeps: their pages, and the command that submits one.
 */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  Dialog,
  ICommandPalette,
  InputDialog,
  showDialog
} from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { reportProblem } from '../feedback';
import { Pages } from '../place';
import { CommandIDs, DOMAIN, IJobListModel, IPaiClient } from '../tokens';
import { SweepForm } from './form';
import type { SweepPage } from './view';

/** Ask for the values of a document's sweep, submit it, and show it. */
async function submitSweep(
  commands: CommandRegistry,
  client: IPaiClient,
  trans: TranslationBundle,
  document: string,
  secretsOf: string | undefined
): Promise<void> {
  const answer = await showDialog({
    title: trans.__('Submit as a sweep'),
    body: new SweepForm(trans),
    buttons: [
      Dialog.cancelButton(),
      Dialog.okButton({ label: trans.__('Submit') })
    ]
  });
  if (!answer.button.accept || !answer.value) {
    return;
  }
  try {
    const sweep = { ...answer.value, document, secretsOf };
    const { name } = await client.submitSweep(sweep);
    await commands.execute(CommandIDs.openSweep, { sweep: name });
  } catch (reason) {
    reportProblem(trans, reason);
  }
}

/** Shows sweeps and submits them. */
export const sweepsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-pai:sweeps',
  description: 'Submits PAI jobs as sweeps, and shows them.',
  autoStart: true,
  requires: [IPaiClient, IJobListModel],
  optional: [ILabShell, ITranslator, ICommandPalette, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    client: IPaiClient,
    jobs: IJobListModel,
    labShell: ILabShell | null,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null
  ): void => {
    const language = translator ?? nullTranslator;
    const trans = language.load(DOMAIN);
    const { commands, shell } = app;
    const pages = new Pages<SweepPage>(shell, labShell, 'jp-pai-sweep');
    const open = (name: string): Promise<void> =>
      pages.show(name, async () => {
        const [{ SweepPage }, { SweepModel }] = await Promise.all([
          import('./view'),
          import('./model')
        ]);
        const model = new SweepModel(client, name);
        return new SweepPage({ model, client, commands, translator: language });
      });
    commands.addCommand(CommandIDs.openSweep, {
      label: trans.__('Show PAI Sweep…'),
      describedBy: {
        args: {
          type: 'object',
          properties: {
            sweep: { type: 'string', description: 'Asked for when absent.' }
          }
        }
      },
      execute: async args => {
        const name =
          typeof args.sweep === 'string'
            ? args.sweep
            : (
                await InputDialog.getText({
                  title: trans.__('Show a sweep'),
                  label: trans.__('Name of the sweep')
                })
              ).value;
        if (name) {
          await open(name);
        }
      }
    });
    commands.addCommand(CommandIDs.submitSweep, {
      label: trans.__('Submit as a Sweep…'),
      describedBy: {
        args: {
          type: 'object',
          required: ['document'],
          properties: {
            document: { type: 'string' },
            secretsOf: {
              type: 'string',
              description: 'The job whose secrets masked values are.'
            }
          }
        }
      },
      execute: async ({ document, secretsOf }) => {
        const masked = typeof secretsOf === 'string' ? secretsOf : undefined;
        if (typeof document === 'string') {
          await submitSweep(commands, client, trans, document, masked);
        }
      }
    });
    // Of every change, not only of those of its rows: jobs may end before the page knows them.
    jobs.changed.connect(() => {
      pages.tracker.forEach(page => {
        if (page.isVisible) {
          page.content.model.refresh();
        }
      });
    });
    palette?.addItem({
      command: CommandIDs.openSweep,
      category: trans.__('PAI')
    });
    pages.restore(
      restorer,
      CommandIDs.openSweep,
      page => page.model.name,
      page => ({ sweep: page.model.name })
    );
  }
};
