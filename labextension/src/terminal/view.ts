/**
 * A terminal in a task, as a page.
 */

import { MainAreaWidget, ToolbarButton } from '@jupyterlab/apputils';
import type { ServerConnection } from '@jupyterlab/services';
import { Terminal } from '@jupyterlab/terminal';
import type { ITranslator } from '@jupyterlab/translation';
import { addIcon, stopIcon, Toolbar } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { reportProblem } from '../feedback';
import { paiIcon } from '../icons';
import type { IPaiClient, ITerminalPlace } from '../tokens';
import { CommandIDs, DOMAIN } from '../tokens';
import { TerminalConnection } from './connection';

/** What a page is made of. */
export interface ITerminalPageOptions {
  readonly client: IPaiClient;
  readonly commands: CommandRegistry;
  /** The user's options for terminals of JupyterLab. */
  readonly options: Record<string, unknown>;
  readonly place: ITerminalPlace;
  readonly serverSettings: ServerConnection.ISettings;
  readonly start: boolean;
  readonly translator: ITranslator;
}

/** The terminal itself. Closing it leaves the shell running. */
export class TerminalPage extends Terminal {
  constructor(
    readonly connection: TerminalConnection,
    readonly place: ITerminalPlace,
    options: Record<string, unknown>,
    translator: ITranslator
  ) {
    super(
      connection,
      {
        ...options,
        closeOnExit: false,
        shutdownOnClose: false,
        initialCommand: ''
      },
      translator
    );
    this.addClass('jp-pai-Terminal');
  }

  /** Take over the colours of JupyterLab's theme, if the user wants that. */
  followTheme(): void {
    if (this.getOption('theme') === 'inherit') {
      void this.ready.then(() => this.setOption('theme', 'inherit'));
    }
  }

  dispose(): void {
    super.dispose();
    this.connection.dispose();
  }
}

/** Open a terminal in a task. */
export function newTerminal(
  options: ITerminalPageOptions
): MainAreaWidget<TerminalPage> {
  const { client, commands, place, start, translator } = options;
  const trans = translator.load(DOMAIN);
  const task = `${place.role}-${place.index}`;
  const end = async (): Promise<void> => {
    try {
      await client.endTerminal(place);
    } catch (reason) {
      reportProblem(trans, reason);
    }
  };
  const connection = new TerminalConnection({
    name: `${task} (${place.name})`,
    serverSettings: options.serverSettings,
    trans,
    start,
    open: mayStart => client.terminalSocket(place, mayStart),
    end
  });
  const content = new TerminalPage(
    connection,
    place,
    options.options,
    translator
  );
  const page = new MainAreaWidget({ content });
  const label = new Widget();
  label.addClass('jp-pai-Terminal-label');
  label.node.textContent = `${place.job} · ${task} · ${place.name}`;
  label.node.title = label.node.textContent;
  page.toolbar.addItem('label', label);
  page.toolbar.addItem('spacer', Toolbar.createSpacerItem());
  page.toolbar.addItem(
    'new',
    new ToolbarButton({
      icon: addIcon,
      tooltip: trans.__('New terminal in the same task'),
      onClick: () => {
        const { job, role, index } = place;
        const args = { job, role, index, isNew: true };
        void commands.execute(CommandIDs.openTerminal, args);
      }
    })
  );
  page.toolbar.addItem(
    'end',
    new ToolbarButton({
      icon: stopIcon,
      tooltip: trans.__('End the shell and what runs in it'),
      onClick: () => void end()
    })
  );
  page.title.icon = paiIcon;
  page.title.caption = label.node.title;
  return page;
}
