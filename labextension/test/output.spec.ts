import { MimeModel, RenderMimeRegistry } from '@jupyterlab/rendermime';
import { standardRendererFactories } from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { outputPlugin } from '../src/output/plugin';
import { JobOutputView } from '../src/output/view';
import { JOB_MIME } from '../src/tokens';
import { FakeServer, json } from './fake_server';
import { detail, until } from './wire';

const trans = nullTranslator.load('jupyter_pai');

describe('a job in an output', () => {
  let server: FakeServer;
  let rendermime: RenderMimeRegistry;
  let view: JobOutputView;
  let output: MimeModel;
  let set: object[];

  const model = (ended = false) =>
    new MimeModel({
      data: {
        [JOB_MIME]: {
          uid: 'j1',
          name: 'first',
          state: 'RUNNING',
          seen: '2026-11-25T10:00:00+00:00',
          ended
        },
        'text/html': '<b>stored</b><script>window.bad = 1</script>',
        'text/plain': 'stored'
      },
      callback: options => set.push(options.data ?? {})
    });
  const text = () => view.node.textContent ?? '';

  beforeEach(() => {
    server = new FakeServer();
    server.on('GET jobs/j1/logs', () => new Response('loss 0.5\n'));
    rendermime = new RenderMimeRegistry({
      initialFactories: standardRendererFactories
    });
    const commands = new CommandRegistry();
    view = new JobOutputView({
      client: server.client,
      commands,
      rendermime,
      trans
    });
    Widget.attach(view, document.body);
    set = [];
    output = model();
  });

  afterEach(() => {
    view.dispose();
  });

  it('is what the notebook holds, and when that was, where nothing knows the job', async () => {
    server.on('GET jobs/j1', () =>
      json({ code: 'NoJobError', message: 'There is no job j1.' }, 404)
    );
    await view.render(output);
    await until(() => text().includes('This is the job as it was at'));
    expect(text()).toContain('stored');
    expect(text()).toContain('There is no job j1.');
    expect(view.node.querySelector('script')).toBeNull();
    expect(view.node.querySelector('button')).toBeNull();
    expect(set).toEqual([]);
  });

  it('is the job as it is now where the server knows it', async () => {
    server.on('GET jobs/j1', () => json(detail({ state: 'RUNNING' })));
    await view.render(output);
    await until(() => text().includes('Show Job Details'));
    expect(text()).not.toContain('stored');
  });

  it('brings the notebook up to date once when the job has ended', async () => {
    server.on('GET jobs/j1', () =>
      json(detail({ state: 'SUCCEEDED', phase: 'ended' }))
    );
    server.on('GET output/j1', () =>
      json({ 'text/html': 'it ended', [JOB_MIME]: { uid: 'j1', ended: true } })
    );
    await view.render(output);
    await until(() => set.length > 0);
    await view.render(output);
    await until(() => text().includes('Show Job Details'));
    expect(set).toEqual([
      expect.objectContaining({
        'text/html': 'it ended',
        'text/plain': 'stored'
      })
    ]);
  });

  it('changes no notebook that says already how the job ended', async () => {
    server.on('GET jobs/j1', () =>
      json(detail({ state: 'SUCCEEDED', phase: 'ended' }))
    );
    await view.render(model(true));
    await until(() => text().includes('Show Job Details'));
    const paths = server.requests.map(({ path }) => path);
    expect(paths).not.toContain('output/j1');
    expect(set).toEqual([]);
  });

  it('comes before widgets that need a kernel', () => {
    const app = { commands: new CommandRegistry() };
    void outputPlugin.activate(app as never, server.client, rendermime, null);
    rendermime.addFactory(
      {
        safe: false,
        mimeTypes: ['application/vnd.jupyter.widget-view+json'],
        createRenderer: () => new Widget() as never
      },
      -10
    );
    const bundle = {
      ...output.data,
      'application/vnd.jupyter.widget-view+json': { model_id: 'gone' }
    };
    expect(rendermime.preferredMimeType(bundle, 'any')).toBe(JOB_MIME);
    expect(rendermime.preferredMimeType(bundle, 'ensure')).toBe(JOB_MIME);
  });
});
