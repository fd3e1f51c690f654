import { acceptDialog, waitForDialog } from '@jupyterlab/testing';
import { nullTranslator } from '@jupyterlab/translation';
import { chooseContext } from '../src/contexts/plugin';
import { FakeServer, json } from './fake_server';

const trans = nullTranslator.load('jupyter_pai');
const CONTEXTS = [
  { name: 'local', url: '', current: true },
  { name: 'lab', url: 'https://lab.example.org', current: false }
];

function choice(): HTMLSelectElement {
  return document.querySelector<HTMLSelectElement>('.jp-Dialog select')!;
}

describe('contexts', () => {
  let server: FakeServer;

  beforeEach(() => {
    server = new FakeServer();
    server.on('GET contexts', () => json({ contexts: CONTEXTS, fixedBy: '' }));
    server.on('PUT contexts', () => json({ contexts: CONTEXTS, fixedBy: '' }));
  });

  const puts = () => server.requests.filter(({ method }) => method === 'PUT');

  it('are offered with the one that is used, and another is taken', async () => {
    const changed = chooseContext(server.client, trans);
    await waitForDialog();
    const offered = [...choice().options].map(option => option.value);
    expect(offered).toEqual([
      'local (the private backend)',
      'lab (https://lab.example.org)'
    ]);
    expect(choice().value).toBe(offered[0]);
    choice().value = offered[1];
    await acceptDialog();
    expect(await changed).toBe(true);
    expect(puts().map(({ body }) => body)).toEqual(['{"name":"lab"}']);
  });

  it('stay as they are when the same is chosen', async () => {
    const changed = chooseContext(server.client, trans);
    await waitForDialog();
    await acceptDialog();
    expect(await changed).toBe(false);
    expect(puts()).toEqual([]);
  });

  it('say which variable rules', async () => {
    server.on('GET contexts', () =>
      json({ contexts: CONTEXTS, fixedBy: 'PAI_URL' })
    );
    const changed = chooseContext(server.client, trans);
    await waitForDialog();
    expect(document.querySelector('.jp-Dialog')!.textContent).toContain(
      'The variable PAI_URL says'
    );
    await acceptDialog();
    expect(await changed).toBe(false);
    expect(puts()).toEqual([]);
  });
});
