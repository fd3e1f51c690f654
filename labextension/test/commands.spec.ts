import { Notification } from '@jupyterlab/apputils';
import {
  acceptDialog,
  dismissDialog,
  waitForDialog
} from '@jupyterlab/testing';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { addOpenJob } from '../src/detail/commands';
import { addJobCommands } from '../src/jobs/commands';
import { JobListModel } from '../src/jobs/model';
import { addSubmitCommands } from '../src/submit/commands';
import { cloneName } from '../src/submit/importing';
import { decode, fileText } from '../src/submit/encoding';
import { DocumentModel } from '../src/submit/model';
import { CommandIDs } from '../src/tokens';
import { FakeServer, json } from './fake_server';
import { detail, summary } from './wire';

const TICKET = {
  url: 'http://first--jupyter.localhost:9000/.pai/signin?ticket=t',
  pathUrl: '/s/first--jupyter/.pai/signin?ticket=t',
  expiresAt: '2026-11-21T10:01:00Z',
  proof: 'proof',
  isJupyter: true
};
const STOP = 'PUT jobs/ada~first/executionType';

/** A browser tab that records where it was led. */
function fakeTab() {
  return { opener: {}, close: jest.fn(), location: { replace: jest.fn() } };
}

/** All messages shown, oldest first. */
function messages(): string[] {
  return Notification.manager.notifications.map(({ message }) => message);
}

describe('commands', () => {
  let server: FakeServer;
  let commands: CommandRegistry;
  let model: JobListModel;
  let tab: ReturnType<typeof fakeTab> | null;
  let copied: string;
  const trans = nullTranslator.load('jupyter_pai');

  const list = (...jobs: unknown[]) =>
    server.on('GET jobs', () => json({ totalCount: jobs.length, data: jobs }));
  const asked = (route: string) =>
    server.requests.filter(({ method, path }) => `${method} ${path}` === route);

  beforeEach(async () => {
    Notification.dismiss();
    server = new FakeServer();
    commands = new CommandRegistry();
    model = new JobListModel({ client: server.client });
    tab = fakeTab();
    copied = '';
    list(summary());
    server.on('GET jobs/ada~first', () => json(detail()));
    server.on(STOP, () => json({}, 202));
    await model.refresh();
    addJobCommands(commands, {
      client: server.client,
      model,
      trans,
      showJobs: () => undefined,
      copy: text => {
        copied = text;
      },
      openTab: () => tab as unknown as Window | null
    });
  });

  afterEach(() => {
    model.dispose();
  });

  describe('on a job', () => {
    it('act on the selected one and rest without', () => {
      expect(commands.isEnabled(CommandIDs.stopJob)).toBe(false);
      model.select('j1');
      expect(commands.isEnabled(CommandIDs.stopJob)).toBe(true);
      expect(commands.isEnabled(CommandIDs.openService)).toBe(true);
    });

    it('do not stop what has ended', async () => {
      list(summary({ state: 'SUCCEEDED' }));
      await model.refresh();
      model.select('j1');
      expect(commands.isEnabled(CommandIDs.stopJob)).toBe(false);
    });

    it('describe their arguments', async () => {
      for (const id of commands.listCommands()) {
        expect(await commands.describedBy(id)).toMatchObject({
          args: { type: 'object' }
        });
      }
    });
  });

  describe(CommandIDs.stopJob, () => {
    it('stops after a yes and reads the list again', async () => {
      const done = commands.execute(CommandIDs.stopJob, { job: 'ada~first' });
      await waitForDialog();
      expect(asked(STOP)).toHaveLength(0);
      await acceptDialog();
      await done;
      expect(asked(STOP)).toHaveLength(1);
      expect(asked('GET jobs')).toHaveLength(6);
    });

    it('does nothing after a no', async () => {
      const done = commands.execute(CommandIDs.stopJob, { job: 'ada~first' });
      await waitForDialog();
      await dismissDialog();
      await done;
      expect(asked(STOP)).toHaveLength(0);
    });

    it('says why it failed and what helps', async () => {
      server.on(STOP, () =>
        json(
          { code: 'NoJobError', message: 'No such job.', hint: 'Look.' },
          404
        )
      );
      const done = commands.execute(CommandIDs.stopJob, { job: 'ada~first' });
      await acceptDialog();
      await done;
      expect(messages()).toEqual(['No such job.\nLook.']);
    });
  });

  describe(CommandIDs.deleteJob, () => {
    const DELETE = 'DELETE jobs/ada~first';

    it('rests unless the selected job has ended', async () => {
      model.select('j1');
      expect(commands.isEnabled(CommandIDs.deleteJob)).toBe(false);
      list(summary({ state: 'SUCCEEDED' }));
      await model.refresh();
      expect(commands.isEnabled(CommandIDs.deleteJob)).toBe(true);
    });

    it('deletes after a yes and reads the list again', async () => {
      server.on(DELETE, () => json({ status: 202, message: 'gone' }, 202));
      const done = commands.execute(CommandIDs.deleteJob, { job: 'ada~first' });
      await waitForDialog();
      expect(asked(DELETE)).toHaveLength(0);
      await acceptDialog();
      await done;
      expect(asked(DELETE)).toHaveLength(1);
      expect(asked('GET jobs')).toHaveLength(6);
    });

    it('does nothing after a no', async () => {
      const done = commands.execute(CommandIDs.deleteJob, { job: 'ada~first' });
      await waitForDialog();
      await dismissDialog();
      await done;
      expect(asked(DELETE)).toHaveLength(0);
    });

    it('says why it failed and what helps', async () => {
      server.on(DELETE, () =>
        json(
          {
            code: 'NotFinishedJobError',
            message: 'It runs.',
            hint: 'Stop it.'
          },
          409
        )
      );
      const done = commands.execute(CommandIDs.deleteJob, { job: 'ada~first' });
      await acceptDialog();
      await done;
      expect(messages()).toEqual(['It runs.\nStop it.']);
    });
  });

  describe(CommandIDs.restartJob, () => {
    it('rests unless the selected job has ended', async () => {
      model.select('j1');
      expect(commands.isEnabled(CommandIDs.restartJob)).toBe(false);
      list(summary({ state: 'FAILED' }));
      await model.refresh();
      expect(commands.isEnabled(CommandIDs.restartJob)).toBe(true);
    });

    it('starts the job and reads the list again', async () => {
      await commands.execute(CommandIDs.restartJob, { job: 'ada~first' });
      expect(asked(STOP).map(({ body }) => body)).toEqual([
        JSON.stringify({ value: 'START' })
      ]);
      expect(asked('GET jobs')).toHaveLength(6);
    });

    it('says why it failed and what helps', async () => {
      server.on(STOP, () =>
        json(
          {
            code: 'ReadOnlyJobError',
            message: 'It is being stopped.',
            hint: 'Wait.'
          },
          409
        )
      );
      await commands.execute(CommandIDs.restartJob, { job: 'ada~first' });
      expect(messages()).toEqual(['It is being stopped.\nWait.']);
    });
  });

  describe(CommandIDs.releaseJob, () => {
    const RELEASE = 'POST jobs/ada~first/release';

    it('rests unless the selected job keeps a task', async () => {
      model.select('j1');
      expect(commands.isEnabled(CommandIDs.releaseJob)).toBe(false);
      list(summary({ phase: 'kept for debugging' }));
      await model.refresh();
      expect(commands.isEnabled(CommandIDs.releaseJob)).toBe(true);
    });

    it('lets go of the named task and says so', async () => {
      server.on(RELEASE, () =>
        json({ status: 202, message: '', tasks: ['worker-1'] }, 202)
      );
      const args = { job: 'ada~first', task: 'worker-1' };
      await commands.execute(CommandIDs.releaseJob, args);
      expect(asked(RELEASE)[0].query.get('task')).toBe('worker-1');
      expect(messages()).toEqual(['Released: worker-1']);
      expect(asked('GET jobs')).toHaveLength(6);
    });

    it('lets go of all without a name, and says when there was none', async () => {
      server.on(RELEASE, () =>
        json({ status: 202, message: '', tasks: [] }, 202)
      );
      await commands.execute(CommandIDs.releaseJob, { job: 'ada~first' });
      expect(asked(RELEASE)[0].query.get('task')).toBeNull();
      expect(messages()).toEqual(['No task of this job is kept.']);
    });

    it('says why it failed', async () => {
      server.on(RELEASE, () =>
        json({ code: 'NoTaskError', message: 'No such task.' }, 404)
      );
      await commands.execute(CommandIDs.releaseJob, { job: 'ada~first' });
      expect(messages()).toEqual([
        'No such task.\nChoose a task of its Overview.'
      ]);
    });
  });

  describe(CommandIDs.openService, () => {
    const ticket = 'POST jobs/ada~first/services/jupyter/ticket';

    beforeEach(() => {
      server.on('GET /.pai/reached', () => new Response(TICKET.proof));
    });

    it('leads a tab of its own to the service, signed in', async () => {
      server.on(ticket, () => json(TICKET, 201));
      const shown = tab!;
      await commands.execute(CommandIDs.openService, { job: 'ada~first' });
      expect(shown.location.replace).toHaveBeenCalledWith(TICKET.url);
      expect(shown.opener).toBeNull();
    });

    it('closes the tab and says what is missing when no address works', async () => {
      server.on(ticket, () => json({ ...TICKET, isJupyter: false }, 201));
      server.on('GET /.pai/reached', () => new Response('of another'));
      server.on(
        'GET s/first--jupyter/',
        () =>
          new Response('<img src="/x.png">', {
            headers: { 'Content-Type': 'text/html' }
          })
      );
      const port = 'http://first--jupyter.localhost:41234/.pai/local?key=k';
      server.on('POST local/first--jupyter', () =>
        json({ url: port, proof: 'of the port' })
      );
      server.on(
        'DELETE local/first--jupyter',
        () => new Response(null, { status: 204 })
      );
      const opening = commands.execute(CommandIDs.openService, {
        job: 'ada~first'
      });
      await waitForDialog();
      const said = document.querySelector('.jp-Dialog-body')?.textContent;
      await acceptDialog();
      await opening;
      expect(tab!.close).toHaveBeenCalled();
      expect(tab!.location.replace).not.toHaveBeenCalled();
      expect(said).toContain('ssh -L 9000:localhost:9000 SERVER');
    });

    it('opens a service of a job that is hidden, by its label', async () => {
      server.on('POST jobs/j9/services/web/ticket', () => json(TICKET, 201));
      await commands.execute(CommandIDs.openService, {
        job: 'j9',
        label: 'web',
        unlisted: true
      });
      expect(server.requests.map(({ path }) => path)).not.toContain('jobs/j9');
      expect(
        asked('POST jobs/j9/services/web/ticket')[0].query.get('role')
      ).toBeNull();
    });

    it('closes the tab and says why when there is no ticket', async () => {
      server.on(ticket, () =>
        json({ code: 'NoServiceError', message: 'No jupyter.' }, 404)
      );
      await commands.execute(CommandIDs.openService, { job: 'ada~first' });
      expect(tab!.close).toHaveBeenCalled();
      expect(messages()).toEqual([
        'No jupyter.\nChoose one of the addresses on its page.'
      ]);
    });

    it('offers the address when the browser blocks the tab', async () => {
      server.on(ticket, () => json(TICKET, 201));
      tab = null;
      await commands.execute(CommandIDs.openService, { job: 'ada~first' });
      expect(messages()).toEqual(['The browser blocked the new tab.']);
    });

    it('asks for the task that was named', async () => {
      const services = [0, 1].map(index => ({
        ...detail().services[0],
        index
      }));
      server.on('GET jobs/ada~first', () => json(detail({ services })));
      server.on(ticket, () => json(TICKET, 201));
      await commands.execute(CommandIDs.openService, {
        job: 'ada~first',
        label: 'jupyter',
        role: 'worker',
        index: 1
      });
      expect(asked(ticket)[0].query.get('index')).toBe('1');
    });
  });

  describe(CommandIDs.copySsh, () => {
    it('copies the command of the selected job', async () => {
      model.select('j1');
      await commands.execute(CommandIDs.copySsh);
      expect(copied).toBe('ssh first@127.0.0.1 -p 2222');
    });

    it('says that a job has no address yet', async () => {
      server.on('GET jobs/ada~first', () => json(detail({ sshCommand: '' })));
      await commands.execute(CommandIDs.copySsh, { job: 'ada~first' });
      expect(copied).toBe('');
      expect(messages()).toEqual(['This job has no SSH address yet.']);
    });
  });

  describe('on documents', () => {
    let open: DocumentModel[];
    let jobPages: string[];
    let files: Map<string, string>;

    beforeEach(() => {
      files = new Map([['jobs/b.yaml', 'text of jobs/b.yaml\r\n']]);
      open = [];
      jobPages = [];
      server.on('POST validate', () =>
        json({
          valid: true,
          dialect: 'scm',
          name: 'a',
          warnings: [],
          errors: []
        })
      );
      addSubmitCommands(commands, {
        client: server.client,
        model,
        trans,
        current: () => open[open.length - 1] ?? null,
        open: () => {
          open.push(new DocumentModel(server.client));
          return Promise.resolve(open[open.length - 1]);
        },
        chooseFile: () => Promise.resolve(new File(['{}'], 'a.json')),
        textOf: file =>
          Promise.resolve(file instanceof File ? fileText('{}') : decode(file)),
        selectedPath: () => 'jobs/b.yaml',
        openedPath: () => null,
        readFile: path => {
          const text = files.get(path);
          return text === undefined
            ? Promise.reject(new Error('Not Found'))
            : Promise.resolve({
                bytes: new TextEncoder().encode(text),
                changed: text
              });
        },
        writeFile: (path, bytes) => {
          files.set(path, new TextDecoder().decode(bytes));
          return Promise.resolve(files.get(path) ?? '');
        }
      });
      addOpenJob(commands, {
        jobs: model,
        trans,
        open: job => {
          jobPages.push(job);
          return Promise.resolve();
        }
      });
    });

    afterEach(() => {
      open.forEach(document => document.dispose());
    });

    it('import a file of this computer into the empty page in front', async () => {
      await commands.execute(CommandIDs.newJob);
      await commands.execute(CommandIDs.importFile);
      expect(open).toHaveLength(1);
      expect(open[0].state).toMatchObject({ text: '{}', filename: 'a.json' });
    });

    it.each([
      ['first', ['first'], 'first_2'],
      ['first', ['first', 'first_2'], 'first_3'],
      ['first_2', ['first_2', 'first_3'], 'first_4'],
      ['run_2024', [], 'run_2024_2']
    ])('name a clone of %s beside %j %s', (name, taken, expected) => {
      expect(cloneName(name, taken)).toBe(expected);
    });

    it.each([
      ['as it is', {}, 0],
      ['and tell that secrets are masked', { 'X-Pai-Masked': 'true' }, 1]
    ])('open the document of a job %s', async (_, headers, warnings) => {
      const text = '# a comment\nname: first\nunknown: 1\n';
      const type = { 'Content-Type': 'application/yaml', ...headers };
      server.on(
        'GET jobs/ada~first/config',
        () => new Response(text, { headers: type })
      );
      await commands.execute(CommandIDs.cloneJob, { job: 'ada~first' });
      expect(open[0].state).toMatchObject({
        text,
        filename: 'job.yaml',
        name: 'first_2'
      });
      expect(messages()).toHaveLength(warnings);
      server.on('POST jobs', () => json(detail(), 202));
      await open[0].submit();
      const queries = server.requests.map(({ query }) => query);
      expect(queries.some(query => query.has('masked'))).toBe(true);
      const secretsOf = queries.map(query => query.get('secretsOf'));
      expect(secretsOf.includes('ada~first')).toBe(warnings === 0);
    });

    it('open a document that shows the output of a job in TensorBoard', async () => {
      await commands.execute(CommandIDs.newBoard, { job: 'ada~first' });
      const { name, username, uid, image } = detail();
      const document = JSON.parse(open[0].state.text) as {
        taskRoles: { command: string }[];
      };
      expect(document).toMatchObject({
        jobName: `${name}_board`,
        image,
        dataDir: `$PAI_DEFAULT_FS_URI/Output/${username}/${uid}`,
        taskRoles: [{ portList: [{ label: 'board' }] }]
      });
      expect(document.taskRoles[0].command).toContain('tensorboard --logdir');
    });

    it('keep the bytes of a cloned document but for what is changed', async () => {
      const source = '\ufeff# 注释\r\nname: first\r\nunknown: 1\r\n';
      const utf8 = (text: string) => new TextEncoder().encode(text);
      server.on('GET jobs/ada~first/config', () => new Response(utf8(source)));
      await commands.execute(CommandIDs.cloneJob, { job: 'ada~first' });
      expect(open[0].bytes()).toEqual(utf8(source));
      open[0].edit(open[0].state.text.replace('1', '2'));
      expect(open[0].bytes()).toEqual(utf8(source.replace('1', '2')));
    });

    it('import into a new page when the one in front is in use', async () => {
      await commands.execute(CommandIDs.newJob);
      open[0].edit('mine');
      await commands.execute(CommandIDs.importFile);
      expect(open.map(document => document.state.text)).toEqual(['mine', '{}']);
    });

    it('import the selected file of the Jupyter server', async () => {
      await commands.execute(CommandIDs.importDocument);
      expect(open[0].state).toMatchObject({
        text: 'text of jobs/b.yaml\n',
        filename: 'b.yaml'
      });
    });

    it('write a document back with its line breaks', async () => {
      await commands.execute(CommandIDs.importDocument);
      open[0].edit('changed\n');
      expect(open[0].state.dirty).toBe(true);
      await commands.execute(CommandIDs.saveDocument);
      expect(files.get('jobs/b.yaml')).toBe('changed\r\n');
      expect(open[0].state.dirty).toBe(false);
    });

    it('go on with a draft, or with the file when there is none', async () => {
      server.on('GET drafts/d', () => new Response('half'));
      await commands.execute(CommandIDs.newJob, { draft: 'd' });
      expect(open[0].state).toMatchObject({ text: 'half', dirty: true });
      server.on('GET drafts/e', () => json({ code: 'NoFileError' }, 404));
      await commands.execute(CommandIDs.newJob, {
        draft: 'e',
        filename: 'b.yaml',
        path: 'jobs/b.yaml'
      });
      expect(open[1].state.dirty).toBe(false);
      expect(open[1].state.file?.path).toBe('jobs/b.yaml');
    });

    it('are offered for job documents only', () => {
      const visible = (path: string) =>
        commands.isVisible(CommandIDs.importDocument, { path });
      expect(['a.json', 'a.YML', 'a.yaml'].map(visible)).toEqual([
        true,
        true,
        true
      ]);
      expect(['a.ipynb', 'json'].map(visible)).toEqual([false, false]);
    });

    it('submit, then show the new job', async () => {
      server.on('POST jobs', () => json(detail(), 202));
      await commands.execute(CommandIDs.newJob);
      expect(commands.isEnabled(CommandIDs.submit)).toBe(false);
      open[0].edit('{}');
      expect(commands.isEnabled(CommandIDs.submit)).toBe(true);
      await commands.execute(CommandIDs.submit);
      expect(model.selectedJob?.id).toBe('ada~first');
      expect(jobPages).toEqual(['ada~first']);
    });

    describe('under a taken name', () => {
      const submits = () => asked('POST jobs');
      beforeEach(async () => {
        await commands.execute(CommandIDs.newJob);
        server.on('POST jobs', () =>
          submits().slice(-1)[0].query.get('replace') === 'true'
            ? json(detail(), 202)
            : json({ code: 'ConflictJobError', message: 'Taken.' }, 409)
        );
        open[0].edit('{}');
      });

      it('replace the job after a yes', async () => {
        const done = commands.execute(CommandIDs.submit);
        await acceptDialog();
        await done;
        expect(submits()).toHaveLength(2);
        expect(jobPages).toEqual(['ada~first']);
      });

      it('replace the holder of the workspace name after a yes', async () => {
        server.on('POST jobs', () =>
          submits().slice(-1)[0].query.get('replace') === 'true'
            ? json(detail(), 202)
            : json({ code: 'ConflictAddressError', message: 'Held.' }, 409)
        );
        const done = commands.execute(CommandIDs.submit);
        await acceptDialog();
        await done;
        expect(submits()).toHaveLength(2);
      });

      it('say that it is taken after a no', async () => {
        const done = commands.execute(CommandIDs.submit);
        await dismissDialog();
        expect(await done).toMatchObject({ kind: 'failed' });
        expect(submits()).toHaveLength(1);
        expect(open[0].state.problem?.message).toBe('Taken.');
      });
    });
  });
});
