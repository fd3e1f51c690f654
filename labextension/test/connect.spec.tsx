import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { addConnect } from '../src/connect/commands';
import { ConnectModel } from '../src/connect/model';
import { launchJson } from '../src/connect/programs';
import { Connect } from '../src/connect/view';
import { JobListModel } from '../src/jobs/model';
import { CommandIDs } from '../src/tokens';
import { FakeServer, Held, json } from './fake_server';
import { acceptDialog, framePromise, waitForDialog } from '@jupyterlab/testing';
import { detail, guide, report, share, until } from './wire';

const trans = nullTranslator.load('jupyter_pai');
const GUIDE = 'POST connect/ada~first';
const WEB = {
  label: 'web',
  role: 'main',
  index: 0,
  alias: 'first--web',
  port: 8000,
  url: 'http://first--web.localhost:9000/',
  pathUrl: '/s/first--web/',
  state: 'RUNNING'
} as const;
const SHARES = 'GET jobs/ada~first/shares';
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

  it('has VS Code run, shows its password, and opens the port that no page lists', async () => {
    const commands = new CommandRegistry();
    const opened: unknown[] = [];
    commands.addCommand(CommandIDs.openService, {
      describedBy: { args: { type: 'object' } },
      execute: args => opened.push(args)
    });
    const jobs = new JobListModel({ client: server.client });
    addConnect(commands, { client: server.client, jobs, trans });
    server.on('POST code/ada~first', () =>
      json({ label: 'http', password: 'f00d' })
    );
    const done = commands.execute(CommandIDs.openCode, { job: 'ada~first' });
    await waitForDialog();
    while (!document.body.textContent?.includes('f00d')) {
      await framePromise(); // a dialog shows what React renders a moment later
    }
    await acceptDialog();
    await done;
    expect(opened).toEqual([
      { job: 'ada~first', label: 'http', unlisted: true }
    ]);
    jobs.dispose();
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

  it('shows commands for a port, TensorBoard and a debugger, within what a share allows', async () => {
    await model.load();
    show();
    const told = host.querySelector('details:last-of-type')?.textContent ?? '';
    expect(told).toContain('pai forward first LABEL');
    expect(told).toContain('pai tensorboard first');
    expect(
      (JSON.parse(launchJson(guide())) as { configurations: object[] })
        .configurations[0]
    ).toMatchObject({
      connect: { host: '127.0.0.1', port: 5678 },
      pathMappings: [{ localRoot: '${workspaceFolder}', remoteRoot: '/work' }]
    });
    server.on(GUIDE, () => json(guide({ links: [], only: ['port:web'] })));
    await model.load();
    show();
    expect(host.textContent).toContain('pai forward first LABEL');
    expect(host.textContent).not.toContain('pai debug');
  });

  it('lists shares and links of the job, makes and ends them', async () => {
    const given = [
      share(),
      share({ user: 'link:1', isLink: true, services: ['web'] })
    ];
    server.on(SHARES, () => json({ data: given }));
    server.on('GET jobs/ada~first', () =>
      json(detail({ services: [WEB, { ...WEB, index: 1 }] }))
    );
    server.on('POST jobs/ada~first/links', () =>
      json({ ...share(), url: 'http://x/.pai/link#secret' }, 201)
    );
    server.on('POST jobs/ada~first/shares', () => json(share(), 201));
    server.on('DELETE jobs/ada~first/shares/link:1', () => {
      given.pop();
      return new Response(null, { status: 204 });
    });
    await model.loadShares();
    show();
    expect(host.querySelector('[data-share="link:1"]')?.textContent).toContain(
      'Link for reading web · until the job ends'
    );
    expect(
      host.querySelectorAll('[aria-label="Service to share"] option')
    ).toHaveLength(1);
    await model.share('web', '', 60);
    show();
    expect(host.querySelector('[role="status"]')?.textContent).toContain(
      '#secret'
    );
    await model.share('web', 'bob', 60);
    await model.endShare('link:1');
    show();
    expect(host.textContent).not.toContain('#secret');
    expect(host.querySelectorAll('[data-share]')).toHaveLength(1);
    const bodies = server.requests
      .filter(({ method }) => method === 'POST')
      .map(({ body }) => JSON.parse(body) as object);
    expect(bodies).toEqual([
      { label: 'web', lifetimeS: 60 },
      { user: 'bob', only: ['port:web'], lifetimeS: 60 }
    ]);
  });

  describe('its private key', () => {
    const KEY = 'GET jobs/ada~first/key';
    const saved: [string, string][] = [];
    const group = () =>
      host.querySelector('[aria-label="Private key of this job"]');
    const press = () =>
      group()
        ?.querySelector('button')
        ?.dispatchEvent(new MouseEvent('click', { bubbles: true }));

    beforeEach(async () => {
      saved.length = 0;
      const blobs = new Map<string, Blob>();
      URL.createObjectURL = blob => {
        blobs.set('blob:1', blob as Blob);
        return 'blob:1';
      };
      URL.revokeObjectURL = url => blobs.delete(url);
      jest
        .spyOn(HTMLAnchorElement.prototype, 'click')
        .mockImplementation(function (this: HTMLAnchorElement) {
          saved.push([this.download, blobs.get(this.href)?.type ?? '']);
        });
      server.on('GET users/me', () => json({ username: 'ada' }));
      server.on('GET jobs/ada~first', () => json(detail()));
      await model.load();
    });

    afterEach(() => {
      jest.restoreAllMocks();
    });

    it('is saved in the format that was chosen, under the name that the server gives', async () => {
      server.on(KEY, ({ query }) => {
        expect(query.get('format')).toBe('ppk');
        const name = 'attachment; filename="first-alias.ppk"';
        return new Response('PuTTY-User-Key-File-3: …', {
          headers: { 'Content-Disposition': name }
        });
      });
      await model.loadKey();
      show();
      expect(group()?.textContent).toContain('until the job ends');
      expect(group()?.textContent).toContain('chmod 600');
      const select = group()?.querySelector('select');
      expect(select?.getAttribute('aria-label')).toBe('Format of the key');
      if (select) {
        select.value = 'ppk';
        select.dispatchEvent(new Event('change', { bubbles: true }));
      }
      expect(group()?.textContent).not.toContain('chmod 600');
      press();
      await until(() => saved.length > 0);
      expect(saved).toEqual([['first-alias.ppk', 'application/octet-stream']]);
      expect(JSON.stringify(model.state)).not.toContain('PuTTY-User-Key');
      expect(model.state.takingKey).toBe(false);
    });

    it('is offered to no other user, and not after the end of the job', async () => {
      server.on('GET users/me', () => json({ username: 'root' }));
      await model.loadKey();
      show();
      expect(group()).toBeNull();
      server.on('GET users/me', () => json({ username: 'ada' }));
      server.on('GET jobs/ada~first', () => json(detail({ state: 'FAILED' })));
      await model.loadKey();
      show();
      expect(group()).toBeNull();
      server.on('GET jobs/ada~first', () => json({ code: 'NoJobError' }, 404));
      await model.loadKey();
      show();
      expect(group()).toBeNull();
      expect(host.querySelector('[role="alert"]')).toBeNull();
    });

    it('says why it is refused, and saves nothing', async () => {
      const refusal = {
        code: 'ForbiddenUserError',
        message: 'A token that expires cannot take the key of a job.'
      };
      server.on(KEY, () => json(refusal, 403));
      await model.loadKey();
      show();
      press();
      await until(() => model.state.problem !== null);
      show();
      expect(host.querySelector('[role="alert"]')?.textContent).toContain(
        'A token that expires'
      );
      expect(saved).toEqual([]);
    });

    it('is asked for once at a time, and dropped when the dialog is closed meanwhile', async () => {
      const held = new Held();
      server.on(KEY, () => held.answer);
      const first = model.takeKey('openssh');
      expect(await model.takeKey('pem')).toBeNull();
      model.dispose();
      held.release(new Response('-----BEGIN'));
      expect(await first).toBeNull();
    });
  });

  it('shows no shares of a job of another user, and says why one cannot be made', async () => {
    server.on(SHARES, () => json({ code: 'NoJobError' }, 404));
    await model.loadShares();
    show();
    expect(host.querySelector('[aria-label="Shares"]')).toBeNull();
    expect(host.querySelector('[role="alert"]')).toBeNull();
    server.on('POST jobs/ada~first/shares', () =>
      json({ code: 'NoUserError', message: 'There is no user eve.' }, 404)
    );
    await model.share('web', 'eve', 60);
    show();
    expect(host.querySelector('[role="alert"]')?.textContent).toContain(
      'There is no user eve.'
    );
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
