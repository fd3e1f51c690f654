import { RenderMimeRegistry } from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { DetailModel } from '../src/detail/model';
import { JobPage } from '../src/detail/view';
import { FakeServer, Held, json } from './fake_server';
import { detail, until } from './wire';

describe('the page of a job', () => {
  it('shows no part below its head before there is a head', async () => {
    const server = new FakeServer();
    const held = new Held();
    server.on('GET jobs/ada~first', () => held.answer);
    const page = new JobPage({
      model: new DetailModel(server.client, 'ada~first'),
      commands: new CommandRegistry(),
      rendermime: new RenderMimeRegistry(),
      translator: nullTranslator
    });
    const [, parts] = page.widgets;
    expect(parts.node.getAttribute('role')).toBe('tabpanel');
    expect(parts.isHidden).toBe(true);
    held.release(json(detail()));
    await until(() => page.model.state.job !== null);
    expect(parts.isHidden).toBe(false);
    page.dispose();
  });
});
