import { DocumentModel } from '../src/submit/model';
import { FakeServer, Held, json } from './fake_server';
import { detail, until } from './wire';

const FAULT = {
  path: '$.image',
  message: 'image is missing',
  line: 2,
  column: 3,
  hint: ''
};

function verdict(name: string, errors: unknown[] = []): Response {
  const valid = errors.length === 0;
  return json({ valid, dialect: 'scm', name, warnings: [], errors });
}

describe('DocumentModel', () => {
  let server: FakeServer;
  let model: DocumentModel;

  beforeEach(() => {
    server = new FakeServer();
    server.on('POST validate', () => verdict('a'));
    model = new DocumentModel(server.client);
  });

  afterEach(() => {
    model.dispose();
  });

  it('says what would become of a valid document, and not of another one', async () => {
    const waiting = { changes: [], texts: {}, startsAt: null };
    server.on('POST trial', () => json({ outcome: 'waits', waiting }));
    model.load('{}', 'a.json');
    await until(() => model.state.trial !== null);
    expect(model.state.trial?.outcome).toBe('waits');
    model.edit('{ }');
    expect(model.state.trial).toBeNull();
  });

  it('keeps what is typed as a draft until it is submitted', async () => {
    const kept = () =>
      server.requests.filter(({ path }) => path === `drafts/${model.draft}`);
    server.on(`PUT drafts/${model.draft}`, () => new Response(null));
    server.on(`DELETE drafts/${model.draft}`, () => new Response(null));
    server.on('POST jobs', () => json(detail(), 202));
    model.load('{}', 'a.json');
    expect(await model.keepDraft()).toBe(true);
    expect(kept()).toEqual([]);
    model.edit('{ }');
    await until(() => kept().length === 1);
    expect(kept()[0].body).toBe('{ }');
    await model.submit();
    await until(() => kept().length === 2);
    expect(kept()[1].method).toBe('DELETE');
    expect(model.state.dirty).toBe(false);
  });

  it('says when the backend does not take a draft', async () => {
    server.on(`PUT drafts/${model.draft}`, () =>
      json({ code: 'InvalidParametersError', message: 'secrets' }, 400)
    );
    model.edit('secrets: {');
    expect(await model.keepDraft()).toBe(false);
    expect(model.state.unkept?.message).toBe('secrets');
  });

  it('checks a document once typing rests', async () => {
    model.edit('{');
    model.edit('{}');
    expect(model.state.check).toBe('unchecked');
    await until(() => model.state.check === 'valid');
    const checks = server.requests.filter(({ path }) => path === 'validate');
    expect(checks.map(request => request.body)).toEqual(['{}']);
    expect(model.state.documentName).toBe('a');
  });

  it('drops what is said about a text that has changed since', async () => {
    const held = new Held();
    server.on('POST validate', ({ body }) =>
      body === 'old' ? held.answer : verdict('new')
    );
    model.edit('old');
    const first = model.validate();
    model.edit('new');
    await model.validate();
    held.release(verdict('old', [FAULT]));
    await first;
    expect(model.state.documentName).toBe('new');
    expect(model.state.faults).toEqual([]);
  });

  it('lists every fault with its place', async () => {
    server.on('POST validate', () => verdict('a', [FAULT, FAULT]));
    model.load('{}', 'a.json');
    await until(() => model.state.check === 'invalid');
    expect(model.state.faults).toEqual([FAULT, FAULT]);
    expect(server.requests[0].query.get('filename')).toBe('a.json');
  });

  it('forgets the faults of a text that was replaced', async () => {
    server.on('POST validate', () => verdict('a', [FAULT]));
    model.edit('{');
    await until(() => model.state.check === 'invalid');
    model.edit('');
    expect(model.state.check).toBe('empty');
    expect(model.state.faults).toEqual([]);
  });

  it('reads files with any line break as the editor does', () => {
    model.load('{\r\n}\r', 'a.json');
    expect(model.state.text).toBe('{\n}\n');
  });

  it('repeats a submission without an answer under its key, and no other', async () => {
    const keys = () =>
      server.requests
        .filter(({ path }) => path === 'jobs')
        .map(({ headers }) => headers.get('Idempotency-Key'));
    model.load('{}', 'a.json');
    server.on('POST jobs', () => json({ code: 'UnavailableError' }, 503));
    await model.submit();
    await model.submit();
    server.on('POST jobs', () => json(detail()));
    await model.submit();
    await model.submit();
    model.edit('{ }');
    await model.submit();
    const [first, second, third, fourth, fifth] = keys();
    expect(first).toBeTruthy();
    expect([second, third]).toEqual([first, first]);
    expect(new Set([first, fourth, fifth]).size).toBe(3);
  });

  it('sends the folder that it was given again with each submission, as it is then', async () => {
    let digest = 1;
    server.on('POST folders', ({ body }) => {
      expect(body).toBe('{"path":"work"}');
      return json({ codeDir: `$FS/ada/.pai/code/work.${digest++}.tree` });
    });
    server.on('POST jobs', () => json(detail(), 202));
    model.load('{}', 'a.json');
    const codeDir = await model.sendFolder('work');
    model.edit(`{"codeDir": "${codeDir}"}`);
    expect(model.state.folder).toEqual({ path: 'work', codeDir });
    expect((await model.submit()).kind).toBe('submitted');
    const sent = server.requests.find(
      ({ method, path }) => method === 'POST' && path === 'jobs'
    );
    expect(sent?.body).toBe('{"codeDir": "$FS/ada/.pai/code/work.2.tree"}');
    expect(model.state.text).toBe(sent?.body);
  });

  it('does not submit an older folder when it cannot be sent again, and sends none that the document has dropped', async () => {
    server.on('POST folders', () => json({ codeDir: '$FS/x.1.tree' }));
    server.on('POST jobs', () => json(detail(), 202));
    model.load('{}', 'a.json');
    model.edit(`{"codeDir": "${await model.sendFolder('')}"}`);
    server.on('POST folders', () => json({ codeDir: '$FS/x.2.tree' }));
    expect((await model.withFolder())?.text).toBe(
      '{"codeDir": "$FS/x.2.tree"}'
    );
    server.on('POST folders', () =>
      json({ code: 'InvalidParametersError', message: 'gone' }, 400)
    );
    expect(await model.withFolder()).toBeNull();
    expect(model.state.problem?.message).toBe('gone');
    expect(await model.submit()).toMatchObject({
      kind: 'failed',
      problem: { message: 'gone' }
    });
    expect(server.requests.some(({ path }) => path === 'jobs')).toBe(false);
    model.edit('{}');
    expect((await model.submit()).kind).toBe('submitted');
  });

  it('submits under another name when one is given', async () => {
    server.on('POST jobs', () => json(detail(), 202));
    model.edit('{}');
    model.rename(' second ');
    const outcome = await model.submit();
    expect(outcome.kind).toBe('submitted');
    const post = server.requests.find(({ path }) => path === 'jobs');
    expect(post?.query.get('name')).toBe('second');
    expect(model.state.submitting).toBe(false);
  });

  it('shows the faults of a refused submission in the document', async () => {
    server.on('POST jobs', () =>
      json(
        { code: 'InvalidProtocolError', message: 'no', errors: [FAULT] },
        400
      )
    );
    model.edit('{}');
    expect(await model.submit()).toEqual({ kind: 'invalid', faults: [FAULT] });
    expect(model.state.check).toBe('invalid');
  });

  it('keeps the document when the name is taken', async () => {
    server.on('POST jobs', () =>
      json({ code: 'ConflictJobError', message: 'taken', hint: 'rename' }, 409)
    );
    model.edit('{}');
    const outcome = await model.submit();
    expect(outcome.kind).toBe('failed');
    expect(model.state.problem?.hint).toBe('rename');
    expect(model.state.text).toBe('{}');
  });
});
