import { Notification } from '@jupyterlab/apputils';
import {
  acceptDialog,
  dismissDialog,
  waitForDialog
} from '@jupyterlab/testing';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { flushSync } from 'react-dom';
import type { Root } from 'react-dom/client';
import { createRoot } from 'react-dom/client';
import { choosePath } from '../src/files/choosing';
import { addFilesCommands, uploadFiles } from '../src/files/commands';
import { FilesModel } from '../src/files/model';
import { ordered } from '../src/files/order';
import {
  crumbsOf,
  folderOf,
  inDocuments,
  nameOf,
  pathFrom,
  within
} from '../src/files/paths';
import { endingOf, isText, TEXT_BYTES, textFrom } from '../src/files/preview';
import { sizeText } from '../src/files/sizes';
import { PART_BYTES } from '../src/files/uploads';
import { dropped, Files } from '../src/files/view';
import type { IFileActions } from '../src/files/table';
import { CommandIDs } from '../src/tokens';
import type { IFileEntry } from '../src/types';
import { FakeServer, Held, json } from './fake_server';

const trans = nullTranslator.load('jupyter_pai');

function entry(name: string, change: Partial<IFileEntry> = {}): IFileEntry {
  const modified = '2026-11-21T10:00:00Z';
  return { name, kind: 'file', size: 1, modified, ...change };
}

function folder(name: string): IFileEntry {
  return entry(name, { kind: 'directory', size: 0, modified: null });
}

function listing(path: string, data: readonly IFileEntry[], truncated = false) {
  return json({ path, data, truncated });
}

function file(bytes: string | Uint8Array, length?: number): Response {
  const size = length ?? bytes.length;
  const headers = { 'X-Pai-Kind': 'file', 'X-Pai-Size': String(size) };
  return new Response(bytes, { headers });
}

/** Resolves when nothing that has begun is left to do. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) {
    await new Promise(resolve => setTimeout(resolve));
  }
}

describe('paths of the storage', () => {
  it('are read as users write them', () => {
    for (const typed of [
      '/ann/code',
      'ann/code/',
      '$PAI_DEFAULT_FS_URI/ann/code',
      'pai://ann/code',
      ' //ann/./x/../code '
    ]) {
      expect(pathFrom(typed)).toBe('/ann/code');
    }
    expect(pathFrom('../../etc')).toBe('/etc');
    expect(pathFrom('')).toBe('/');
  });

  it('have names, folders, and a form for documents', () => {
    expect(within('/', 'ann')).toBe('/ann');
    expect(folderOf('/ann/code')).toBe('/ann');
    expect(folderOf('/ann')).toBe('/');
    expect(nameOf('/ann/code')).toBe('code');
    expect(inDocuments('/ann/code')).toBe('$PAI_DEFAULT_FS_URI/ann/code');
    expect(inDocuments('/')).toBe('$PAI_DEFAULT_FS_URI/');
    expect(crumbsOf('/ann/code').map(each => each.path)).toEqual([
      '/',
      '/ann',
      '/ann/code'
    ]);
  });
});

it('orders folders first, names by their numbers, and each column both ways', () => {
  const all = [
    entry('b10', { size: 5, modified: '2026-11-21T10:00:00Z' }),
    entry('b2', { size: 9, modified: '2026-11-22T10:00:00Z' }),
    folder('z')
  ];
  const names = (by: 'name' | 'size' | 'modified', isDescending = false) =>
    ordered(all, { by, isDescending }).map(each => each.name);
  expect(names('name')).toEqual(['z', 'b2', 'b10']);
  expect(names('name', true)).toEqual(['z', 'b10', 'b2']);
  expect(names('size')).toEqual(['z', 'b10', 'b2']);
  expect(names('modified', true)).toEqual(['z', 'b2', 'b10']);
});

it('says sizes in the unit that suits', () => {
  expect([0, 1023, 1536, 200 * 1024, 3 * 1024 ** 4].map(sizeText)).toEqual([
    '0 B',
    '1023 B',
    '1.5 KiB',
    '200 KiB',
    '3.0 TiB'
  ]);
});

it('tells texts from other bytes, and cuts no character', () => {
  const of = (text: string) => new TextEncoder().encode(text);
  expect(isText(of('a\tb\r\n\u001b[31mred\u001b[0m 中'))).toBe(true);
  expect(isText(new Uint8Array([65, 0, 66]))).toBe(false);
  expect(isText(new Uint8Array([1, 2, 3, 4]))).toBe(false);
  expect(textFrom(of('a中').slice(0, 3), true)).toBe('a');
  expect(textFrom(new Uint8Array([97, 0xff]), false)).toBe('a\ufffd');
  expect(['x.tar.GZ', '.bashrc', 'Makefile'].map(endingOf)).toEqual([
    'gz',
    '',
    ''
  ]);
});

describe('files of the storage', () => {
  let server: FakeServer;
  let model: FilesModel;

  const puts = () =>
    server.requests
      .filter(({ method }) => method === 'PUT')
      .map(({ path, query, body }) => [path, query.toString(), body.length]);
  const stages = () => model.uploads.all.map(each => each.stage);

  beforeEach(() => {
    Notification.dismiss();
    server = new FakeServer();
    server.on('GET users/me', () => json({ username: 'ann' }));
    server.on('GET fs/ann', () =>
      listing('/ann', [entry('b.txt'), folder('code'), entry('a.png')])
    );
    model = new FilesModel(server.client);
  });

  afterEach(() => model.dispose());

  describe('the model', () => {
    it('opens the own folder first, which the root has before it is made', async () => {
      await model.openHome();
      expect(model.state.path).toBe('/ann');
      expect(model.state.entries.map(each => each.name)).toEqual([
        'code',
        'a.png',
        'b.txt'
      ]);
      server.on('GET fs/', () => listing('/', [folder('team')]));
      await model.open('/');
      expect(model.state.entries.map(each => each.name)).toEqual([
        'ann',
        'team'
      ]);
    });

    it('reads a large folder page by page', async () => {
      const many = (from: number) =>
        Array.from({ length: 10_000 }, (_, i) => entry(`f${from + i}`));
      server.on('GET fs/many', ({ query }) => {
        const after = query.get('after');
        return after === null
          ? listing('/many', many(0), true)
          : listing('/many', after === 'f9999' ? [entry('last')] : []);
      });
      await model.open('/many');
      expect(model.state.entries).toHaveLength(10_001);
      expect(model.state.isTruncated).toBe(false);
    });

    it('opens the folder of a file that it is led to, and the file', async () => {
      server.on('GET fs/ann/b.txt', ({ query }) =>
        file(query.get('length') === '0' ? '' : 'hello', 5)
      );
      await model.open('$PAI_DEFAULT_FS_URI/ann/b.txt');
      expect(model.state.path).toBe('/ann');
      expect(model.state.preview?.shown).toEqual({
        kind: 'text',
        text: 'hello',
        isCut: false
      });
    });

    it('shows what was opened last, whichever answer comes last', async () => {
      const held = new Held();
      server.on('GET fs/slow', () => held.answer);
      const slow = model.open('/slow');
      await model.open('/ann');
      held.release(listing('/slow', [entry('x')]));
      await slow;
      expect(model.state.path).toBe('/ann');
      expect(model.state.entries).toHaveLength(3);
    });

    it('keeps the list when it cannot be read again, and says why', async () => {
      await model.open('/ann');
      const body = {
        code: 'UnavailableError',
        message: 'The storage is away.'
      };
      server.on('GET fs/ann', () => json(body, 503));
      await model.refresh();
      expect(model.state.problem?.code).toBe('UnavailableError');
      expect(model.state.entries).toHaveLength(3);
      await model.open('/ann/other');
      expect(model.state.entries).toEqual([]);
    });

    it('cuts a long text, and fetches no picture that is too large', async () => {
      await model.open('/ann');
      const text = new Uint8Array(TEXT_BYTES).fill(97);
      server.on('GET fs/ann/b.txt', () => file(text, 10 * TEXT_BYTES));
      await model.look('b.txt');
      expect(model.state.preview?.shown).toMatchObject({ isCut: true });
      server.on('GET fs/ann/a.png', () => file('', 10 ** 10));
      await model.look('a.png');
      expect(model.state.preview?.shown).toEqual({ kind: 'large' });
      const lengths = server.requests
        .filter(({ path }) => path === 'fs/ann/a.png')
        .map(({ query }) => query.get('length'));
      expect(lengths).toEqual(['0']);
    });
  });

  describe('uploads', () => {
    /** A storage of parts: answers as the backend does. */
    const store = (name: string) => {
      let kept = 0;
      server.on(`PUT fs/ann/${name}`, ({ query, body }) => {
        const offset = Number(query.get('offset'));
        if (offset > kept) {
          const said = { code: 'ConflictFileError', message: 'Wrong offset.' };
          return json(said, 409);
        }
        kept = offset + body.length;
        const complete = kept === Number(query.get('size'));
        return json({ path: `/ann/${name}`, kept, complete });
      });
      return {
        forget: () => {
          kept = 0;
        }
      };
    };
    const large = (size: number, name = 'new.bin') =>
      new File([new Uint8Array(size).fill(97)], name);

    it('go in parts, and the folder is read again after the last', async () => {
      store('new.bin');
      await model.open('/ann');
      const size = 2 * PART_BYTES + 5;
      const file = large(size);
      model.uploads.add('/ann', [{ file, replace: false }]);
      await rest();
      expect(stages()).toEqual(['done']);
      expect(puts()).toEqual([
        ['fs/ann/new.bin', `offset=0&size=${size}&replace=false`, PART_BYTES],
        [
          'fs/ann/new.bin',
          `offset=${PART_BYTES}&size=${size}&replace=false`,
          PART_BYTES
        ],
        [
          'fs/ann/new.bin',
          `offset=${2 * PART_BYTES}&size=${size}&replace=false`,
          5
        ]
      ]);
      const read = server.requests.filter(({ path }) => path === 'fs/ann');
      expect(read).toHaveLength(2);
    });

    it('send an empty file, too', async () => {
      store('empty');
      const file = new File([], 'empty');
      model.uploads.add('/ann', [{ file, replace: false }]);
      await rest();
      expect(stages()).toEqual(['done']);
    });

    it('go on from what the backend has, and start over where it has nothing', async () => {
      const kept = store('new.bin');
      const handler = (refused: boolean) => {
        const answer = server.answerOf('PUT fs/ann/new.bin');
        server.on('PUT fs/ann/new.bin', request =>
          refused && request.query.get('offset') !== '0'
            ? json({ code: 'UnavailableError', message: 'Away.' }, 503)
            : answer(request)
        );
        return () => server.on('PUT fs/ann/new.bin', answer);
      };
      const file = large(PART_BYTES + 5);
      const restore = handler(true);
      model.uploads.add('/ann', [{ file, replace: false }]);
      await rest();
      const [failed] = model.uploads.all;
      expect([failed.stage, failed.sent]).toEqual(['failed', PART_BYTES]);
      expect(failed.problem?.code).toBe('UnavailableError');
      restore();
      model.uploads.retry(failed.id);
      await rest();
      expect(stages()).toEqual(['done']);
      const offsets = () =>
        puts().map(([, query]) => /offset=(\d+)/.exec(String(query))![1]);
      expect(offsets().slice(2)).toEqual([String(PART_BYTES)]);

      const again = handler(true);
      model.uploads.add('/ann', [{ file, replace: true }]);
      await rest();
      again();
      kept.forget();
      model.uploads.retry(model.uploads.all[1].id);
      await rest();
      expect(stages()).toEqual(['done', 'done']);
      expect(offsets().slice(5)).toEqual([
        String(PART_BYTES),
        '0',
        String(PART_BYTES)
      ]);
    });

    it('end when they are cancelled: what came is dropped, others go on', async () => {
      const held = new Held();
      server.on('PUT fs/ann/one', ({ body }) =>
        body
          ? held.answer
          : json({ path: '/ann/one', kept: 0, complete: false })
      );
      store('two');
      model.uploads.add('/ann', [
        { file: large(5, 'one'), replace: true },
        { file: large(5, 'two'), replace: true }
      ]);
      await rest();
      expect(stages()).toEqual(['sending', 'waiting']);
      model.uploads.cancel(model.uploads.all[0].id);
      held.release(json({ path: '/ann/one', kept: 5, complete: false }));
      await rest();
      expect(stages()).toEqual(['cancelled', 'done']);
      expect(puts()).toContainEqual([
        'fs/ann/one',
        'offset=0&size=5&replace=true',
        0
      ]);
      model.uploads.clear();
      expect(model.uploads.all).toEqual([]);
    });

    it('replace nothing without a question', async () => {
      await model.open('/ann');
      store('b.txt');
      store('c.txt');
      const options = { model, trans, show: () => Promise.resolve() };
      const files = [large(3, 'b.txt'), large(3, 'c.txt')];
      const cancelled = uploadFiles(options, files);
      await waitForDialog();
      const dialog = document.querySelector('.jp-Dialog')!;
      expect(dialog.textContent).toContain(
        'The folder has these already: b.txt'
      );
      await dismissDialog();
      await cancelled;
      expect(puts()).toEqual([]);
      const replaced = uploadFiles(options, files);
      await waitForDialog();
      await acceptDialog();
      await replaced;
      await rest();
      expect(puts().map(each => each.slice(0, 2))).toEqual([
        ['fs/ann/b.txt', 'offset=0&size=3&replace=true'],
        ['fs/ann/c.txt', 'offset=0&size=3&replace=false']
      ]);
    });
  });

  describe('the page', () => {
    let host: HTMLElement;
    let root: Root;
    let commands: CommandRegistry;
    let shown: string[];
    let uploaded: string[][];

    const draw = (actions: boolean = true) => {
      const execute = (id: string, args = {}) =>
        void commands.execute(id, args);
      const own: IFileActions = {
        upload: files => uploaded.push(files.map(each => each.name)),
        chooseUploads: () => undefined,
        newFolder: () => execute(CommandIDs.newFolder),
        remove: path => execute(CommandIDs.deleteFile, { path })
      };
      const props = { model, trans, actions: actions ? own : null };
      flushSync(() => root.render(<Files {...props} />));
    };
    const named = (name: string, of = 'button, a') =>
      [...host.querySelectorAll<HTMLElement>(of)].find(
        each => (each.getAttribute('aria-label') ?? each.textContent) === name
      ) as HTMLElement;

    beforeEach(() => {
      shown = [];
      uploaded = [];
      commands = new CommandRegistry();
      addFilesCommands(commands, {
        model,
        trans,
        show: path => {
          shown.push(path);
          return Promise.resolve();
        }
      });
      host = document.body.appendChild(document.createElement('div'));
      root = createRoot(host);
    });

    afterEach(() => {
      root.unmount();
      host.remove();
    });

    it('shows names with sizes, the way to the folder, and opens folders', async () => {
      await model.open('/ann');
      draw();
      const rows = [...host.querySelectorAll('tbody tr')].map(row =>
        [...row.children].slice(0, 2).map(cell => cell.textContent)
      );
      expect(rows).toEqual([
        ['code', ''],
        ['a.png', '1 B'],
        ['b.txt', '1 B']
      ]);
      const crumbs = [...host.querySelectorAll('nav button')];
      expect(crumbs.map(each => each.textContent)).toEqual(['Storage', 'ann']);
      expect(host.querySelector('input')!.value).toBe('/ann');
      server.on('GET fs/ann/code', () => listing('/ann/code', []));
      named('Open the folder code').click();
      await rest();
      draw();
      expect(host.textContent).toContain('The folder is empty.');
      const link = named('Download b.txt', 'a');
      expect(link).toBeUndefined();
    });

    it('has an address for each file, which the browser saves by itself', async () => {
      await model.open('/ann');
      draw();
      const link = named('Download b.txt') as HTMLAnchorElement;
      expect(link.download).toBe('b.txt');
      expect(link.href).toBe(
        'http://127.0.0.1:8888/base/pai/api/v2/fs/ann/b.txt?token=secret'
      );
    });

    it('shows a text as a text, and a picture from its bytes alone', async () => {
      await model.open('/ann');
      const html = '<script>document.title = "run"</script>';
      server.on('GET fs/ann/b.txt', () => file(html));
      await model.look('b.txt');
      draw();
      expect(host.querySelector('pre')!.textContent).toBe(html);
      expect(host.querySelector('script')).toBeNull();
      expect(named('b.txt').getAttribute('aria-pressed')).toBe('true');
      const made: Blob[] = [];
      URL.createObjectURL = blob => `blob:${made.push(blob as Blob)}`;
      URL.revokeObjectURL = () => undefined;
      server.on('GET fs/ann/a.svg', () => file('<svg/>'));
      await model.look('a.svg');
      draw();
      await rest();
      expect(host.querySelector('img')!.src).toBe('blob:1');
      expect(made[0].type).toBe('image/svg+xml');
      expect(host.querySelector('svg svg, pre')).toBeNull();
      flushSync(() => named('Close').click());
      draw();
      expect(host.querySelector('img')).toBeNull();
    });

    it('says when the storage is forbidden or away', async () => {
      const body = { code: 'ForbiddenUserError', message: 'Not yours.' };
      server.on('GET fs/bob', () => json(body, 403));
      await model.open('/bob');
      draw();
      const alert = host.querySelector('[role="alert"]')!;
      expect(alert.textContent).toContain('Not yours.');
      expect(host.querySelector('table')).toBeNull();
    });

    it('takes dropped files, but no folders and nothing at the root', async () => {
      const item = (name: string, isDirectory: boolean) => ({
        webkitGetAsEntry: () => ({ isDirectory }),
        getAsFile: () => new File(['x'], name)
      });
      const items = [item('a', false), item('d', true), item('b', false)];
      const transfer = { types: ['Files'], items } as unknown as DataTransfer;
      expect(dropped(transfer).files.map(each => each.name)).toEqual([
        'a',
        'b'
      ]);
      expect(dropped(transfer).hasFolders).toBe(true);
      const drop = () => {
        const event = new Event('drop', { bubbles: true, cancelable: true });
        Object.assign(event, { dataTransfer: transfer });
        host.querySelector('.jp-pai-Files-body')!.dispatchEvent(event);
      };
      await model.open('/ann');
      draw();
      drop();
      expect(uploaded).toEqual([['a', 'b']]);
      server.on('GET fs/', () => listing('/', [folder('team')]));
      await model.open('/');
      draw();
      drop();
      expect(uploaded).toHaveLength(1);
      expect((named('Upload…') as HTMLButtonElement).disabled).toBe(true);
    });

    it('deletes after a question, which says what goes with a folder', async () => {
      await model.open('/ann');
      draw();
      server.on(
        'DELETE fs/ann/code',
        () => new Response(null, { status: 204 })
      );
      named('Delete code').click();
      await waitForDialog();
      expect(document.querySelector('.jp-Dialog')!.textContent).toContain(
        'with all that is in it'
      );
      await dismissDialog();
      await rest();
      const deleted = () =>
        server.requests.filter(({ method }) => method === 'DELETE');
      expect(deleted()).toEqual([]);
      named('Delete code').click();
      await waitForDialog();
      await acceptDialog();
      await rest();
      expect(deleted()).toHaveLength(1);
      expect(deleted()[0].query.get('recursive')).toBe('true');
    });

    it('makes a folder and opens it, and tells what the backend refuses', async () => {
      await model.open('/ann');
      server.on('POST fs/ann/data', () => new Response(null, { status: 204 }));
      server.on('GET fs/ann/data', () => listing('/ann/data', []));
      const make = async (name: string) => {
        const done = commands.execute(CommandIDs.newFolder);
        await waitForDialog();
        document.querySelector<HTMLInputElement>('.jp-Dialog input')!.value =
          name;
        await acceptDialog();
        await done;
      };
      await make('data');
      expect(model.state.path).toBe('/ann/data');
      const body = { code: 'ConflictFileError', message: 'It is a file.' };
      server.on('POST fs/ann/data/x', () => json(body, 409));
      await make('x');
      const told = Notification.manager.notifications.map(each => each.message);
      expect(told).toEqual([expect.stringContaining('It is a file.')]);
      await commands.execute(CommandIDs.showFiles, { path: '/Output/x' });
      await commands.execute(CommandIDs.showFiles);
      expect(shown).toEqual(['/Output/x', '']);
    });

    it('shows how far uploads are, and clears those that ended', async () => {
      const held = new Held();
      server.on('PUT fs/ann/one', () => held.answer);
      model.uploads.add('/ann', [
        { file: new File(['12345'], 'one'), replace: false }
      ]);
      await rest();
      draw();
      expect(host.querySelector('progress')!.max).toBe(5);
      expect(named('Cancel the upload of one')).toBeDefined();
      held.release(json({ path: '/ann/one', kept: 0, complete: true }));
      await rest();
      draw();
      expect(host.textContent).toContain('1 of 1 uploaded');
      named('Clear the list').click();
      draw();
      expect(host.textContent).not.toContain('uploaded');
    });
  });

  describe('the dialog of the form', () => {
    const inDialog = (name: string) =>
      [
        ...document.querySelectorAll<HTMLElement>('.jp-Dialog-body button')
      ].find(
        each => (each.getAttribute('aria-label') ?? each.textContent) === name
      ) as HTMLElement;

    it('chooses a file, as documents write it, and changes nothing', async () => {
      const done = choosePath(
        server.client,
        trans,
        '$PAI_DEFAULT_FS_URI/ann/code'
      );
      await waitForDialog();
      await rest();
      expect(document.querySelector('.jp-Dialog-body tbody')).not.toBeNull();
      expect(inDialog('Upload…')).toBeUndefined();
      expect(inDialog('Delete b.txt')).toBeUndefined();
      inDialog('b.txt').click();
      await acceptDialog();
      expect(await done).toBe('$PAI_DEFAULT_FS_URI/ann/b.txt');
    });

    it('chooses the open folder where no file is chosen, and nothing when cancelled', async () => {
      server.on('GET fs/ann/code', () => listing('/ann/code', []));
      const done = choosePath(server.client, trans, '/elsewhere');
      await waitForDialog();
      await rest();
      inDialog('Open the folder code').click();
      await rest();
      await acceptDialog();
      expect(await done).toBe('$PAI_DEFAULT_FS_URI/ann/code');
      const cancelled = choosePath(server.client, trans, '');
      await waitForDialog();
      await dismissDialog();
      expect(await cancelled).toBeNull();
    });

    it('leaves Enter to what has the keyboard', async () => {
      const done = choosePath(server.client, trans, '');
      await waitForDialog();
      await rest();
      const input = document.querySelector<HTMLInputElement>(
        '.jp-Dialog-body input'
      )!;
      input.focus();
      const enter = new KeyboardEvent('keydown', {
        key: 'Enter',
        bubbles: true
      });
      input.dispatchEvent(enter);
      await rest();
      expect(document.querySelector('.jp-Dialog')).not.toBeNull();
      await dismissDialog();
      await done;
    });
  });
});
