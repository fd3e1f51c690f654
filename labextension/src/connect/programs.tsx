/**
 * What leads a port of the user's computer to a task: services over TCP, a debugger, TensorBoard.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { CommandIDs } from '../tokens';
import type { IGuide } from '../types';

/** debugpy's own port, which `pai debug` takes. */
const DEBUG_PORT = 5678;

/** A text with a button that copies it. */
export function Copied(props: {
  trans: TranslationBundle;
  commands: CommandRegistry;
  text: string;
}): JSX.Element {
  const { trans, commands, text } = props;
  return (
    <>
      <code>{text}</code>
      <button
        className="jp-mod-styled"
        onClick={() =>
          void commands.execute(CommandIDs.copySsh, { command: text })
        }
      >
        {trans.__('Copy')}
      </button>
    </>
  );
}

/** A `launch.json` for the port that `pai debug` leads to the task. */
export function launchJson(guide: IGuide): string {
  const configuration = {
    name: `Attach to ${guide.user}`,
    type: 'debugpy',
    request: 'attach',
    connect: { host: '127.0.0.1', port: DEBUG_PORT },
    pathMappings: [
      { localRoot: '${workspaceFolder}', remoteRoot: guide.directory }
    ]
  };
  return JSON.stringify(
    { version: '0.2.0', configurations: [configuration] },
    undefined,
    2
  );
}

/** Commands for the user's computer; those that run programs only where the user may. */
export function Programs(props: {
  trans: TranslationBundle;
  commands: CommandRegistry;
  guide: IGuide;
}): JSX.Element {
  const { trans, commands, guide } = props;
  const job = guide.user;
  const words: [string, string][] = [
    [trans.__('Forward a port'), `pai forward ${job} LABEL`]
  ];
  if (guide.only.length === 0) {
    words.push(
      [trans.__('TensorBoard'), `pai tensorboard ${job}`],
      [trans.__('VS Code in the browser'), `pai code ${job}`],
      [trans.__('Debugger'), `pai debug ${job}`]
    );
  }
  return (
    <details>
      <summary>{trans.__('Forward a port, TensorBoard, debugger')}</summary>
      <p>
        {trans.__(
          'On your computer. They need the SSH gateway at %1:%2; where only JupyterLab is reached, open services on the page of the job.',
          guide.host,
          guide.port
        )}
      </p>
      <dl className="jp-pai-Connect-values">
        {words.map(([name, text]) => (
          <React.Fragment key={text}>
            <dt>{name}</dt>
            <dd className="jp-pai-Connect-command">
              <Copied commands={commands} text={text} trans={trans} />
            </dd>
          </React.Fragment>
        ))}
      </dl>
      {guide.only.length === 0 && (
        <>
          <p>
            {trans.__(
              'While pai debug runs, PyCharm attaches to 127.0.0.1:%1, Visual Studio to tcp://localhost:%1, and VS Code by .vscode/launch.json:',
              DEBUG_PORT
            )}
          </p>
          <pre className="jp-pai-Connect-command">
            <Copied
              commands={commands}
              text={launchJson(guide)}
              trans={trans}
            />
          </pre>
        </>
      )}
    </details>
  );
}
