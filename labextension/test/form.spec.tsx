import { nullTranslator } from '@jupyterlab/translation';
import { FormComponent } from '@jupyterlab/ui-components';
import * as React from 'react';
import { act } from 'react-dom/test-utils';
import type { Root } from 'react-dom/client';
import { createRoot } from 'react-dom/client';
import { linesOf, scalarOf } from '../src/form/own_fields';
import { FormModel, Schemas } from '../src/form/model';
import type { Json } from '../src/form/paths';
import {
  clusterChoices,
  folderOf,
  gpuChoices,
  gpusByType,
  gpusOf,
  shareOf
} from '../src/form/pickers';
import { recentImages, remember } from '../src/form/recent';
import { added, duplicated, freeName, rolesOf } from '../src/form/roles';
import type { Change } from '../src/form/remedies';
import { remedied, remedyOf } from '../src/form/remedies';
import type { FormDialect, IFormSchema } from '../src/form/schema';
import {
  dialectOf,
  inLanguage,
  initialOf,
  ofSection,
  pruned,
  sectionOf,
  uiOf
} from '../src/form/schema';
import { errorsBelow, FormView } from '../src/form/view';
import { DocumentModel } from '../src/submit/model';
import { replacement } from '../src/submit/twin';
import { Verdict } from '../src/submit/verdict';
import type { IClusterUse } from '../src/types';
import { FakeServer, json } from './fake_server';
import { fault, until } from './wire';

// As it is, and counted.
jest.mock('@jupyterlab/ui-components', () => {
  const lab = jest.requireActual<object>('@jupyterlab/ui-components');
  const real = (lab as { FormComponent: () => JSX.Element }).FormComponent;
  return { ...lab, FormComponent: jest.fn(real) };
});

const trans = nullTranslator.load('jupyter_pai');

const ROLE: IFormSchema = {
  type: 'object',
  required: ['name', 'command'],
  properties: {
    name: { type: 'string', title: 'Name' },
    gpuNumber: {
      type: 'integer',
      title: 'GPUs a task',
      'x-fallback': 0,
      'x-widget': 'gpus'
    },
    command: { type: 'string', title: 'Command', 'x-widget': 'textarea' }
  }
};

const SCHEMA: IFormSchema = {
  type: 'object',
  'x-dialect': 'v1',
  'x-sections': [
    { id: 'basics', title: 'Basics', 'x-words': { zh_CN: { title: '基本' } } },
    { id: 'roles', title: 'Task roles' },
    { id: 'more', title: 'More' }
  ],
  properties: {
    jobName: {
      type: 'string',
      title: 'Name',
      'x-section': 'basics',
      'x-words': { zh_CN: { title: '名称' } }
    },
    protocolVersion: {
      const: 2,
      'x-section': 'basics',
      'x-widget': 'hidden'
    },
    taskRoles: { type: 'array', items: ROLE, 'x-section': 'roles' },
    extras: {
      type: 'object',
      title: 'Extras',
      properties: {
        gangAllocation: {
          type: 'boolean',
          title: 'Together',
          'x-fallback': true,
          'x-section': 'more'
        }
      }
    }
  }
};

const TEXT = `{
  // mine
  "jobName": "train",
  "own": 1,
  "taskRoles": [{"name": "worker", "gpuNumber": 1, "command": "x"}]
}`;

describe('a schema', () => {
  it('tells what is on each page, without what is hidden', () => {
    const shown = (section: string) =>
      Object.keys(ofSection(SCHEMA, section).properties ?? {});
    expect(shown('basics')).toEqual(['jobName']);
    expect(shown('more')).toEqual(['extras']);
    expect(uiOf(ofSection(SCHEMA, 'more')).extras).toMatchObject({
      'ui:flat': true
    });
    expect(sectionOf(SCHEMA, ['taskRoles', 0, 'name'])).toBe('roles');
    expect(sectionOf(SCHEMA, ['extras', 'gangAllocation'])).toBe('more');
    expect(sectionOf(SCHEMA, ['unknown'])).toBeUndefined();
  });

  it('speaks the language of the page', () => {
    const chinese = inLanguage(SCHEMA, 'zh-CN');
    expect(chinese.properties?.jobName.title).toBe('名称');
    expect(chinese['x-sections']?.[0].title).toBe('基本');
    expect(chinese.properties?.extras.title).toBe('Extras');
  });

  it('gives new items what they need', () => {
    expect(initialOf(ROLE)).toEqual({ name: '', command: '' });
    expect(initialOf({ type: 'integer', minimum: 1 })).toBe(1);
    expect(initialOf({ enum: ['a', 'b'] })).toBe('a');
  });

  it('adds nothing that was not filled in', () => {
    const before = { jobName: 'a', extras: {} };
    const after = { jobName: 'a', extras: {}, defaults: {}, list: [] };
    expect(pruned(before, after)).toEqual(before);
    expect(pruned({ a: 1 }, { a: undefined })).toEqual({});
    expect(pruned({ a: null }, { a: null })).toEqual({ a: null });
  });

  it('is that of the dialect that the backend finds', () => {
    expect(dialectOf({ protocolVersion: 2 }, '')).toBe('v2');
    expect(dialectOf({ taskRoles: [{ storageGB: 1 }] }, '')).toBe('scm');
    expect(dialectOf({ tmp: {} }, '')).toBe('scm');
    expect(dialectOf({ taskRoles: [] }, '$QIZHI_JOB_NAME')).toBe('qizhi');
    expect(dialectOf({ taskRoles: [] }, '')).toBe('v1');
  });
});

describe('task roles', () => {
  const LISTED: Json = {
    taskRoles: [{ name: 'a', command: 'x', gpuNumber: 2 }]
  };
  const NAMED: Json = { taskRoles: { ps_server: { commands: ['x'] } } };

  it('are read from a list and from a map', () => {
    expect(rolesOf(LISTED).map(role => [role.name, role.step])).toEqual([
      ['a', 0]
    ]);
    expect(rolesOf(NAMED).map(role => [role.name, role.step])).toEqual([
      ['ps_server', 'ps_server']
    ]);
    expect(rolesOf({})).toEqual([]);
  });

  it('are copied under names of their own', () => {
    expect(duplicated(LISTED, 0)).toEqual({
      taskRoles: [
        { name: 'a', command: 'x', gpuNumber: 2 },
        { name: 'a_2', command: 'x', gpuNumber: 2 }
      ]
    });
    expect(Object.keys(rolesOf(duplicated(NAMED, 0))[1])).toContain('name');
    expect(rolesOf(duplicated(NAMED, 0))[1].name).toBe('ps_server_2');
    expect(freeName('a_2', ['a', 'a_2'])).toBe('a_3');
  });

  it('are added with the needs of the last, and no command', () => {
    expect(added(LISTED, ROLE)).toEqual({
      taskRoles: [
        { name: 'a', command: 'x', gpuNumber: 2 },
        { name: 'a_2', command: '', gpuNumber: 2 }
      ]
    });
    expect(added({ taskRoles: [] }, ROLE)).toEqual({
      taskRoles: [{ name: 'worker', command: '' }]
    });
  });
});

describe('fields', () => {
  it('take lines as items, and keep the type of a scalar', () => {
    expect(linesOf('a\n\nb\n\n')).toEqual(['a', '', 'b']);
    expect(linesOf('')).toEqual([]);
    expect(scalarOf('12', 1)).toBe(12);
    expect(scalarOf('12', 'one')).toBe('12');
    expect(scalarOf('1.', 1)).toBe('1.');
    expect(scalarOf('true', false)).toBe(true);
  });

  it('know what is free', () => {
    const node = {
      ready: true,
      schedulable: true,
      gpuTypes: ['V100'],
      gpus: 4,
      usedGpus: 1,
      badGpus: 0,
      otherGpus: 0,
      cpus: 16,
      memoryMb: 65536
    };
    const use = {
      virtualClusters: [
        {
          name: 'a',
          granted: true,
          mostGpus: 4,
          cells: [{ free: 3, owned: 8 }]
        },
        { name: 'b', granted: false, cells: [] }
      ],
      nodes: [node, { ...node, ready: false }, { ...node, usedGpus: 4 }]
    } as unknown as IClusterUse;
    expect(clusterChoices(use, trans)).toEqual([
      { value: 'a', note: '3 of 8 GPUs free now, you may use 4' }
    ]);
    expect(gpusByType(use).get('V100')).toEqual({
      free: 3,
      all: 12,
      largest: 3
    });
    expect(clusterChoices(null, trans)).toEqual([]);
    expect(gpuChoices(use, trans)).toEqual([
      { value: '1', note: 'free on 1 node' },
      { value: '2', note: 'free on 1 node' },
      { value: '4', note: 'free on 0 nodes' }
    ]);
    const v2 = { resourcePerInstance: { gpu: 2 } };
    expect(shareOf(use, gpusOf(v2), 'memoryMb')).toEqual({
      gpus: 2,
      share: 32768
    });
    expect(shareOf(use, gpusOf({ gpuNumber: 2 }), 'cpus')?.share).toBe(8);
    expect(shareOf(use, 8, 'cpus')).toBeNull();
    expect(shareOf(use, 0, 'cpus')).toBeNull();
  });

  it('know the folder of the storage that is typed in, and images used before', () => {
    expect(folderOf('$PAI_DEFAULT_FS_URI/ada/da')).toBe(
      '$PAI_DEFAULT_FS_URI/ada/'
    );
    expect(folderOf('/data/da')).toBe('');
    const uri = 'python:3.11';
    const needed = [
      { type: 'dockerimage', uri },
      { type: 'data', uri: 'x' }
    ];
    remember({ prerequisites: needed });
    remember({ image: 'pytorch:2' });
    remember({ image: '' });
    expect(recentImages()).toEqual(['pytorch:2', 'python:3.11']);
  });

  it('have the faults that are about them', () => {
    const told = fault({
      path: '$.taskRoles[1].gpuNumber',
      message: 'too many',
      line: 1,
      column: 1,
      hint: 'Use 1'
    });
    expect(errorsBelow([told], ['taskRoles', 1])).toEqual({
      gpuNumber: { __errors: ['too many. Use 1'] }
    });
    expect(errorsBelow([told], ['taskRoles', 0])).toEqual({});
  });
});

describe('a remedy', () => {
  const change = (kind: string, more: object = {}) =>
    ({
      kind,
      vc: '',
      leafType: '',
      role: 'a',
      after: 0,
      ...more
    }) as unknown as Change;
  const V1: Json = { taskRoles: [{ name: 'a', gpuNumber: 64 }] };
  const V2: Json = { taskRoles: { a: { instances: 9 } } };

  const made = (value: Json, dialect: FormDialect, each: Change) => {
    const remedy = remedyOf(trans, value, dialect, each);
    return remedy && remedied(value, remedy);
  };

  it('changes the document where the dialect has it', () => {
    expect(made(V1, 'v1', change('smaller-tasks', { after: 4 }))).toEqual({
      taskRoles: [{ name: 'a', gpuNumber: 4 }]
    });
    expect(made(V2, 'v2', change('fewer-tasks', { after: 2 }))).toEqual({
      taskRoles: { a: { instances: 2 } }
    });
    expect(
      made(V2, 'v2', change('virtual-cluster', { vc: 'b' }))
    ).toMatchObject({
      defaults: { virtualCluster: 'b' }
    });
    expect(made(V1, 'v1', change('type', { leafType: 'K80' }))).toMatchObject({
      gpuType: 'K80'
    });
    expect(made(V2, 'v2', change('opportunistic'))).toMatchObject({
      extras: { hivedScheduler: { jobPriorityClass: 'oppo' } }
    });
  });

  it('changes the role that it is of, and says which, among several', () => {
    const two: Json = { taskRoles: [{ name: 'a' }, { name: 'b' }] };
    const less = change('smaller-tasks', { role: 'b', after: 1 });
    expect(remedyOf(trans, two, 'v1', less)?.label).toMatch(/^b: /);
    expect(made(two, 'v1', less)).toEqual({
      taskRoles: [{ name: 'a' }, { name: 'b', gpuNumber: 1 }]
    });
  });

  it('is not offered where it is not the document’s, or of which role is not known', () => {
    expect(made(V1, 'v1', change('opportunistic'))).toBeNull();
    expect(made(V1, 'v1', change('uncordon'))).toBeNull();
    const other = change('smaller-tasks', { role: 'gone', after: 1 });
    expect(made(V1, 'v1', other)).toBeNull();
  });
});

describe('an editor', () => {
  it('is given only the piece that differs', () => {
    expect(replacement('abcd', 'abXd')).toEqual({ from: 2, to: 3, by: 'X' });
    expect(replacement('aa', 'aaa')).toEqual({ from: 2, to: 2, by: 'a' });
    expect(replacement('same', 'same')).toEqual({ from: 4, to: 4, by: '' });
  });
});

describe('the form', () => {
  let server: FakeServer;
  let document_: DocumentModel;
  let model: FormModel;

  beforeEach(() => {
    server = new FakeServer();
    server.on('POST validate', () =>
      json({
        valid: true,
        dialect: 'openpai-v1',
        name: 'train',
        warnings: [],
        errors: []
      })
    );
    server.on('GET schema/job', () => json(SCHEMA));
    document_ = new DocumentModel(server.client);
    model = new FormModel(document_, server.client, new Schemas(server.client));
  });

  afterEach(() => {
    model.dispose();
    document_.dispose();
  });

  const load = async (text: string, filename = 'a.json') => {
    document_.load(text, filename);
    await until(() => model.state.schema !== null);
  };

  it('follows the text, and changes it where its value changes', async () => {
    await load(TEXT);
    expect(model.state.dialect).toBe('v1');
    model.set({ ...(model.state.value as object), jobName: 'train_2' });
    expect(document_.state.text).toBe(TEXT.replace('"train"', '"train_2"'));
    document_.edit(TEXT.replace('"train"', '"typed"'));
    await until(
      () => (model.state.value as { jobName: string }).jobName === 'typed'
    );
  });

  it('says that a text cannot be read, and keeps what it showed', async () => {
    await load(TEXT);
    document_.edit('{');
    await until(() => model.state.trouble === 'unreadable');
    expect(model.state.value).not.toBeNull();
    model.set({ jobName: 'lost?' });
    expect(document_.state.text).toBe('{');
  });

  it('offers nothing for a text that is too large', async () => {
    await load(TEXT);
    document_.edit(`{"a": "${'x'.repeat(100_001)}"}`);
    await until(() => model.state.trouble === 'large');
    expect(model.state.value).toBeNull();
  });

  it('asks again for a schema that was not answered', async () => {
    let answers = 0;
    server.on('GET schema/job', () =>
      answers++ === 0
        ? json({ code: 'UnavailableError', message: 'away' }, 503)
        : json(SCHEMA)
    );
    document_.load(TEXT, 'a.json');
    await until(() => model.state.problem !== null);
    document_.edit(TEXT.replace('train', 'again'));
    await until(() => model.state.schema !== null);
    expect(model.state.problem).toBeNull();
  });

  describe('as it is drawn', () => {
    let host: HTMLElement;
    let root: Root;

    beforeEach(() => {
      (
        globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
      ).IS_REACT_ACT_ENVIRONMENT = true;
      host = document.body.appendChild(document.createElement('div'));
      root = createRoot(host);
    });

    afterEach(() => {
      act(() => root.unmount());
      host.remove();
    });

    const context = {
      images: [],
      sendFolder: () =>
        Promise.resolve('$PAI_DEFAULT_FS_URI/a/.pai/code/x.1.tree'),
      sentFolder: (codeDir: string) => (codeDir.endsWith('.tree') ? 'x' : null),
      browseStorage: () => Promise.resolve(null),
      names: () => Promise.resolve([])
    };

    const draw = () =>
      act(() =>
        root.render(
          <FormView
            context={context}
            id="f"
            language="en"
            model={model}
            reveal={() => undefined}
            trans={trans}
          />
        )
      );

    const button = (name: string) =>
      [...host.querySelectorAll('button')].find(
        each => (each.getAttribute('aria-label') ?? each.textContent) === name
      ) as HTMLButtonElement;

    it('has a label for each input, and one page at a time', async () => {
      await load(TEXT);
      draw();
      const name = host.querySelector('input') as HTMLInputElement;
      expect(name.value).toBe('train');
      expect(host.querySelector(`label[for="${name.id}"]`)?.textContent).toBe(
        'Name'
      );
      act(() => button('Task roles').click());
      expect(host.querySelectorAll('[role="tabpanel"] input')).toHaveLength(2);
      expect(host.querySelector('textarea')?.value).toBe('x');
    });

    it('writes what is typed into the text', async () => {
      await load(TEXT);
      draw();
      const input = host.querySelector('input') as HTMLInputElement;
      const setter = Object.getOwnPropertyDescriptor(
        HTMLInputElement.prototype,
        'value'
      )?.set;
      act(() => {
        setter?.call(input, 'other');
        input.dispatchEvent(new Event('input', { bubbles: true }));
      });
      expect(document_.state.text).toBe(TEXT.replace('"train"', '"other"'));
    });

    it('renders only the field that is typed in', async () => {
      await load(TEXT);
      draw();
      act(() => button('Task roles').click());
      const area = host.querySelector('textarea') as HTMLTextAreaElement;
      const rendered = jest.mocked(FormComponent);
      const setter = Object.getOwnPropertyDescriptor(
        HTMLTextAreaElement.prototype,
        'value'
      )?.set;
      for (const typed of ['xy', 'xyz']) {
        rendered.mockClear();
        act(() => {
          setter?.call(area, typed);
          area.dispatchEvent(new Event('input', { bubbles: true }));
          draw();
        });
        expect(document_.state.text).toBe(TEXT.replace('"x"', `"${typed}"`));
        const fields = rendered.mock.calls.map(([{ formData }]) => formData);
        expect(fields).toEqual([{ command: typed }]);
      }
    });

    it('has a verdict below that keeps its height while the text is checked', async () => {
      const height = jest
        .spyOn(HTMLElement.prototype, 'offsetHeight', 'get')
        .mockReturnValue(80);
      const verdict = () =>
        act(() =>
          root.render(
            <Verdict
              form={model}
              jump={() => undefined}
              language="en"
              model={document_}
              trans={trans}
            />
          )
        );
      server.on('POST trial', () => json({ outcome: 'starts', waiting: null }));
      await load(TEXT);
      await until(() => document_.state.trial !== null);
      verdict();
      document_.edit(TEXT.replace('"train"', '"typed"'));
      height.mockReturnValue(30);
      verdict();
      expect(host.textContent).toContain('Checking…');
      expect((host.firstChild as HTMLElement).style.minHeight).toBe('80px');
      height.mockRestore();
    });

    it('adds and removes roles', async () => {
      await load(TEXT);
      draw();
      act(() => button('Task roles').click());
      act(() => button('Duplicate worker').click());
      expect(rolesOf(model.state.value ?? null).map(role => role.name)).toEqual(
        ['worker', 'worker_2']
      );
      draw();
      act(() => button('Move worker_2 before').click());
      expect(rolesOf(model.state.value ?? null)[0].name).toBe('worker_2');
      draw();
      act(() => button('Remove worker_2').click());
      expect(rolesOf(model.state.value ?? null).map(role => role.name)).toEqual(
        ['worker']
      );
      expect(document_.state.text).toContain('// mine');
    });

    it('shows faults beside their fields, until these are changed', async () => {
      const fault = {
        path: '$.jobName',
        message: 'jobName must not be empty',
        line: 3,
        column: 14,
        hint: ''
      };
      server.on('POST validate', () =>
        json({
          valid: false,
          dialect: null,
          name: null,
          warnings: [],
          errors: [fault]
        })
      );
      await load(TEXT);
      await until(() => model.state.faults.length === 1);
      draw();
      expect(host.querySelector('[role="alert"]')?.textContent).toContain(
        'must not be empty'
      );
      expect(button('Basicsfaulty')).toBeDefined();
      model.set({ ...(model.state.value as object), jobName: 'good' });
      expect(model.state.faults).toEqual([]);
    });
  });
});
