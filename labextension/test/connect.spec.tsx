import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { addConnect } from '../src/connect/commands';
import { ConnectModel } from '../src/connect/model';
import { Connect } from '../src/connect/view';
import { JobListModel } from '../src/jobs/model';
import { CommandIDs } from '../src/tokens';
import { FakeServer, Held, json } from './fake_server';
import { acceptDialog, waitForDialog } from '@jupyterlab/testing';
import { guide, report } from './wire';

const trans = nullTranslator.load('jupyter_pai');
const GUIDE = 'POST connect/ada~first';
const DOCTOR = 'POST doctor/ada~first';

describe('connecting to a job', () => {
  let server: FakeServer;
  let model: ConnectModel;
  let host: HTMLElement;

  const show = () => {
    host = document.createElement('div');
    const commands = new CommandRegistry();
    flushSync(() =>
      createRoot(host).render(<Connect {...{ model, commands, trans }} />)
    );
  };

  beforeEach(() => {
    server = new FakeServer();
    server.on(GUIDE, () => json(guide()));
    model = new ConnectModel(server.client, 'ada~first');
  });

  afterEach(() => {
    model.dispose();
    document.documentElement.lang = '';
  });

  it('shows the command, a link for each editor and the values to type', async () => {
    await model.load();
    show();
    expect(host.textContent).toContain('ssh first');
    const links = [...host.querySelectorAll('a')];
    expect(links.map(link => link.getAttribute('href'))).toEqual([
      'vscode://vscode-remote/ssh-remote+first/work?windowId=_blank',
      'zed://ssh/first/work'
    ]);
    expect(host.textContent).toContain(
      'OpenSSH config and authentication agent'
    );
    expect(host.textContent).toContain('/usr/bin/python3');
    expect(host.textContent).toContain('SHA256:abc');
  });

  it('says what a share allows, and offers no program that needs more', async () => {
    const terms = { sharedBy: 'ada', only: ['sftp'], until: null };
    const reached = guide({ command: 'sftp first', links: [], ...terms });
    server.on(GUIDE, () => json(reached));
    await model.load();
    show();
    expect(host.querySelector('[role="note"]')?.textContent).toContain(
      'Shared by ada · until the job ends · allowed: sftp'
    );
    expect(host.textContent).toContain('sftp first');
    expect(host.textContent).not.toContain('Interpreter');
    expect(host.querySelector('[aria-label="Editors"]')).toBeNull();
  });

  it('says why a task cannot be reached and what helps', async () => {
    server.on(GUIDE, () =>
      json(
        {
          code: 'InvalidParametersError',
          message: 'Task main-0 is WAITING.',
          hint: 'Follow it.'
        },
        400
      )
    );
    await model.load();
    show();
    expect(host.querySelector('[role="alert"]')?.textContent).toBe(
      'Task main-0 is WAITING.Follow it.'
    );
    expect(host.textContent).not.toContain('Loading');
  });

  it('asks the doctor once at a time and shows what it found', async () => {
    const held = new Held();
    server.on(DOCTOR, () => held.answer);
    const examined = model.examine();
    await model.examine();
    expect(model.state.examining).toBe(true);
    show();
    expect(host.querySelector('section:last-child button')).toHaveProperty(
      'disabled',
      true
    );
    held.release(json(report()));
    await examined;
    show();
    const verdicts = [...host.querySelectorAll('[data-client]')];
    expect(verdicts.map(verdict => verdict.textContent)).toEqual([
      'OpenSSH will work',
      'VS Code will not workThere is no tar.Install tar.'
    ]);
    expect(
      server.requests.filter(({ path }) => path.startsWith('doctor'))
    ).toHaveLength(1);
  });

  it.each([
    ['zh-CN', '没有 tar。'],
    ['fr-FR', 'There is no tar.']
  ])('speaks the language of a page in %s, or English', async (lang, what) => {
    server.on(DOCTOR, () => json(report()));
    document.documentElement.lang = lang;
    await model.examine();
    show();
    expect(host.textContent).toContain(what);
  });

  it('changes nothing any more once it is disposed of', async () => {
    const held = new Held();
    server.on(GUIDE, () => held.answer);
    const loading = model.load();
    const heard = jest.fn();
    model.changed.connect(heard);
    model.dispose();
    held.release(json(guide()));
    await loading;
    expect(heard).not.toHaveBeenCalled();
    expect(model.state.guide).toBeNull();
  });

  it('opens by its command', async () => {
    const jobs = new JobListModel({ client: server.client });
    const commands = new CommandRegistry();
    addConnect(commands, { client: server.client, jobs, trans });
    expect(commands.isEnabled(CommandIDs.connect)).toBe(false);
    const done = commands.execute(CommandIDs.connect, { job: 'ada~first' });
    await waitForDialog();
    expect(document.querySelector('.jp-Dialog')?.textContent).toContain(
      'Connect to ada~first'
    );
    await acceptDialog();
    await done;
    expect(document.querySelector('.jp-Dialog')).toBeNull();
    jobs.dispose();
  });
});
