import { readFileSync } from 'fs';
import { join } from 'path';
import type * as Yaml from 'yaml';
import { parseDocument } from 'yaml';
import type { Json, Path } from '../src/form/paths';
import {
  isList,
  isObject,
  pathOf,
  valueAt,
  withValue
} from '../src/form/paths';
import type { Notation } from '../src/form/twin';
import {
  edited,
  NotFaithful,
  notationOf,
  pathAt,
  rangeOf,
  read,
  swappedText
} from '../src/form/twin';

// As it is, and counted.
jest.mock('yaml', () => {
  const yaml = jest.requireActual<typeof Yaml>('yaml');
  return { ...yaml, parseDocument: jest.fn(yaml.parseDocument) };
});

const DOCUMENTS = join(__dirname, '../../tests/data/documents');
const EXAMPLES = join(__dirname, '../../examples');

function textOf(folder: string, name: string): string {
  return readFileSync(join(folder, name), 'utf-8').replace(/\r\n?/g, '\n');
}

const TEXTS: [string, string, Notation][] = [
  ['SCM', textOf(DOCUMENTS, 'scm-jupyter.json'), 'json'],
  ['QIZHI', textOf(DOCUMENTS, 'qizhi-tensorflow-distributed.json'), 'json'],
  ['v2', textOf(DOCUMENTS, 'openpai-v2-tensorflow-cifar10.yaml'), 'yaml'],
  ['v2 of the examples', textOf(EXAMPLES, 'train.yaml'), 'yaml']
];

const YAML = `# the job
name: train   # of the day
protocolVersion: 2
parameters: {rate: 0.1, note: "a: b"}
taskRoles:
  # who trains
  worker:
    instances: 2     # two of them
    commands:
      - python train.py  # long
      - 'echo "done"'
  ps_server:
    instances: 1
    commands: [sleep 1]
unknownToUs: yes
`;

function valueOf(notation: Notation, text: string): Json {
  const found = read(notation, text);
  if (!found) {
    throw new Error('cannot be read');
  }
  return found.value;
}

function set(text: string, path: Path, value: Json): string {
  const before = valueOf('yaml', text);
  return edited('yaml', text, before, withValue(before, path, value));
}

/** Numbers from 0 to 1, the same ones each time (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const HOSTILE: Json[] = [
  'plain',
  '',
  'no',
  '0x1F',
  ' - x: "y"',
  '# no comment',
  'a\nb\n',
  '<% $secrets.x %>',
  '{{',
  "it's",
  '\u4e2d\u6587',
  7,
  -1,
  0.5,
  null,
  true,
  [],
  ['a', { b: 1 }],
  { 'a b': [1, 2] }
];

/** One change at a random place. */
function mutated(value: Json, random: () => number, depth = 0): Json {
  const some = <T>(items: readonly T[]): T =>
    items[Math.floor(random() * items.length)];
  if (depth < 4 && isObject(value) && Object.keys(value).length > 0) {
    const entries = Object.entries(value);
    const [key, inner] = some(entries);
    const dice = random();
    if (dice < 0.1) {
      return Object.fromEntries(entries.filter(([name]) => name !== key));
    }
    if (dice < 0.2) {
      return { ...value, [`new ${entries.length}`]: some(HOSTILE) };
    }
    if (dice < 0.3) {
      const renamed = `${key}_2`;
      return Object.fromEntries(
        entries.map(([name, each]) => [name === key ? renamed : name, each])
      );
    }
    return { ...value, [key]: mutated(inner, random, depth + 1) };
  }
  if (depth < 4 && isList(value) && value.length > 0) {
    const index = Math.floor(random() * value.length);
    const dice = random();
    const items = [...value];
    if (dice < 0.15) {
      items.splice(index, 1);
    } else if (dice < 0.4) {
      items.splice(index, 0, dice < 0.3 ? items[index] : some(HOSTILE));
    } else {
      items[index] = mutated(items[index], random, depth + 1);
    }
    return items;
  }
  return some(HOSTILE);
}

describe('a text and its value', () => {
  it.each(TEXTS)('of %s is left as it is by no change', (_, text, notation) => {
    expect(notationOf(text, '')).toBe(notation);
    const value = valueOf(notation, text);
    expect(edited(notation, text, value, value)).toBe(text);
  });

  it.each(TEXTS)(
    'of %s mean the same after random changes, or the change is refused',
    (_, text, notation) => {
      const random = generator(19);
      const before = valueOf(notation, text);
      let refused = 0;
      for (let count = 0; count < 120; count++) {
        const after = mutated(before, random);
        try {
          const made = edited(notation, text, before, after);
          expect(valueOf(notation, made)).toEqual(after);
        } catch (reason) {
          expect(reason).toBeInstanceOf(NotFaithful);
          refused++;
        }
      }
      expect(refused).toBeLessThan(4);
    }
  );

  /** The paths of all values without parts. */
  function leaves(value: Json, path: Path = []): Path[] {
    if (isList(value)) {
      return value.flatMap((each, index) => leaves(each, [...path, index]));
    }
    return isObject(value)
      ? Object.entries(value).flatMap(([key, each]) =>
          leaves(each, [...path, key])
        )
      : [path];
  }

  /** What is known of a text: its value, where each part stands, and what stands at each place. */
  function known(text: string): unknown {
    const value = valueOf('yaml', text);
    return [
      value,
      leaves(value).map(path => rangeOf('yaml', text, path)),
      [...text].map((_, offset) =>
        offset % 5 === 0 ? pathAt('yaml', text, offset) : null
      )
    ];
  }

  it.each([
    ...TEXTS.filter(each => each[2] === 'yaml').map(each => each[1]),
    YAML,
    `${YAML}shared: &s {a: 1}\nother: *s\n`,
    `a:\n- b: 1\n  c: [x, 'y']\n- - |+\n    two\n\n  - z\n# end`
  ])('are known after changes of scalars as when they are read', original => {
    const random = generator(7);
    let text = original;
    for (let count = 0; count < 20; count++) {
      const before = valueOf('yaml', text);
      const paths = leaves(before);
      const path = paths[Math.floor(random() * paths.length)];
      const scalars = HOSTILE.filter(each => !isList(each) && !isObject(each));
      const put = scalars[Math.floor(random() * scalars.length)];
      try {
        text = edited('yaml', text, before, withValue(before, path, put));
      } catch (reason) {
        expect(reason).toBeInstanceOf(NotFaithful);
        continue;
      }
      const followed = known(text);
      read('yaml', 'another: text');
      expect(followed).toEqual(known(text));
    }
  });

  it('are not read again as a whole for each key', () => {
    const text = textOf(EXAMPLES, 'train.yaml');
    const parse = jest.mocked(parseDocument);
    let [now, value] = [text, valueOf('yaml', text)];
    parse.mockClear();
    const [path] = leaves(value).filter(each => each.includes('commands'));
    for (const typed of ['a', 'ab', 'abc: "']) {
      const after = withValue(value, path, typed);
      now = edited('yaml', now, value, after);
      value = after;
      expect(read('yaml', now)?.value).toEqual(after);
    }
    const lengths = parse.mock.calls.map(([part]) => String(part).length);
    expect(lengths).toHaveLength(3);
    expect(Math.max(...lengths)).toBeLessThan(40);
  });

  it('are refused a change that aliases would make elsewhere, too', () => {
    const text = 'a: &x\n  cpu: 1\nb: *x\n';
    const before = valueOf('yaml', text);
    expect(() =>
      edited('yaml', text, before, withValue(before, ['a', 'cpu'], 2))
    ).toThrow(NotFaithful);
  });

  it('change in one line when one number does', () => {
    const made = set(YAML, ['taskRoles', 'worker', 'instances'], 3);
    expect(made).toBe(YAML.replace('instances: 2 ', 'instances: 3 '));
  });

  it('keep the quotes of texts', () => {
    const made = set(YAML, ['taskRoles', 'worker', 'commands', 1], 'echo "x"');
    expect(made).toBe(YAML.replace('echo "done"', 'echo "x"'));
  });

  it('get a line for an item that is added', () => {
    const path = ['taskRoles', 'worker', 'commands'];
    const commands = valueAt(valueOf('yaml', YAML), path) as string[];
    const made = set(YAML, path, [...commands, 'exit 0']);
    expect(made).toBe(
      YAML.replace(`'echo "done"'\n`, `'echo "done"'\n      - exit 0\n`)
    );
  });

  it('rename a member where it stands', () => {
    const before = valueOf('yaml', YAML) as Record<string, Json>;
    const roles = before.taskRoles as Record<string, Json>;
    const after = {
      ...before,
      taskRoles: { trainer: roles.worker, ps_server: roles.ps_server }
    };
    expect(edited('yaml', YAML, before, after)).toBe(
      YAML.replace('  worker:', '  trainer:')
    );
  });

  it('keep comments of JSON beside what changes', () => {
    const text = '{\n  // mine\n  "a": 1, /* one */\n  "b": [1, 2]\n}\n';
    const value = valueOf('json', text);
    expect(edited('json', text, value, { a: 1, b: [1, 3] })).toBe(
      text.replace('2]', '3]')
    );
    const tight = '{"a":1,"b":  "x"}';
    expect(edited('json', tight, { a: 1, b: 'x' }, { a: 2, b: 'y' })).toBe(
      '{"a":2,"b":  "y"}'
    );
    expect(edited('json', text, value, { a: 1, c: [1, 2] })).toBe(
      text.replace('"b"', '"c"')
    );
  });

  it('exchange two roles with their comments', () => {
    const value = valueOf('yaml', YAML);
    const made = swappedText('yaml', YAML, value, ['taskRoles'], 0);
    const roles = valueAt(valueOf('yaml', made), ['taskRoles']) as object;
    expect(Object.keys(roles)).toEqual(['ps_server', 'worker']);
    expect(made).toContain('instances: 2     # two of them');
    expect(made.split('\n').sort()).toEqual(YAML.split('\n').sort());
    expect(
      swappedText('yaml', made, valueOf('yaml', made), ['taskRoles'], 0)
    ).toBe(YAML);
    const list = '{"r": [{"x": 1}, /* two */ {"x": 2}]}';
    expect(swappedText('json', list, valueOf('json', list), ['r'], 0)).toBe(
      '{"r": [{"x": 2}, /* two */ {"x": 1}]}'
    );
  });

  it('find each other’s places', () => {
    const path = ['taskRoles', 'worker', 'commands', 0];
    const range = rangeOf('yaml', YAML, path);
    expect(range && YAML.slice(...range)).toBe('python train.py');
    expect(pathAt('yaml', YAML, YAML.indexOf('train.py'))).toEqual(path);
    const json = '{"taskRoles": [{"gpuNumber": 4}]}';
    const inJson = rangeOf('json', json, ['taskRoles', 0, 'gpuNumber']);
    expect(inJson && json.slice(...inJson)).toBe('4');
    expect(pathAt('json', json, json.indexOf('4'))).toEqual([
      'taskRoles',
      0,
      'gpuNumber'
    ]);
    expect(rangeOf('json', json, ['nowhere'])).toBeNull();
  });

  it('are not read when they are several documents, broken, or unfold without end', () => {
    expect(read('yaml', 'a: 1\n---\nb: 2\n')).toBeNull();
    expect(read('yaml', 'a: [1\n')).toBeNull();
    expect(read('json', '{"a": ')).toBeNull();
    const bomb = ['a: &a [x, x, x, x, x, x, x, x, x, x]'];
    for (const [one, two] of ['ab', 'bc', 'cd', 'de', 'ef']) {
      bomb.push(`${two}: &${two} [${Array(10).fill(`*${one}`).join(', ')}]`);
    }
    expect(read('yaml', bomb.join('\n'))).toBeNull();
  });

  it('know names that objects have by themselves', () => {
    const value = valueOf('yaml', 'parameters: {a: 1}\n');
    expect(valueAt(value, ['parameters', 'constructor'])).toBeUndefined();
    expect(valueAt(value, ['parameters', '__proto__'])).toBeUndefined();
  });
});

describe('the path of a fault', () => {
  it.each([
    ['$', []],
    ['$.taskRoles[0].gpuNumber', ['taskRoles', 0, 'gpuNumber']],
    ['$.jobEnvs["a b"]', ['jobEnvs', 'a b']],
    ['', []]
  ])('is read from %s', (text, path) => {
    expect(pathOf(text)).toEqual(path);
  });
});
