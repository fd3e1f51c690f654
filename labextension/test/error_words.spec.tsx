/**
 * What the panel says of every error that the backend may answer with, in both of its languages.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { nullTranslator } from '@jupyterlab/translation';
import { readFileSync } from 'fs';
import { join } from 'path';
import { codeWords } from '../src/error_words';
import { PaiError } from '../src/problem';
import { problemWords } from '../src/words';

const ROOT = join(__dirname, '..', '..');

/** The table of the backend from code to status. */
const TABLE = readFileSync(
  join(ROOT, 'backend', 'pai_backend', 'api', 'errors.py'),
  'utf8'
);
const CODES = [...TABLE.matchAll(/^ {4}"(\w+Error)": \d+,$/gm)].map(
  ([, code]) => code
);

const CATALOGUE = JSON.parse(
  readFileSync(
    join(ROOT, 'jupyter_pai/locale/zh_CN/LC_MESSAGES/jupyter_pai.json'),
    'utf8'
  )
) as Record<string, string[]>;

const english = { trans: nullTranslator.load('jupyter_pai') };
const chinese = {
  __: (text: string) => CATALOGUE[text]?.[0] ?? text
} as TranslationBundle;

const HAN = /\p{Script=Han}/u;
const FOR_PROGRAMS = /curl|header|Authorization|`|\bpai /i;

/** What a program is told to do, which no user of the panel can. */
const HINT = 'Send the header `Authorization: Bearer TOKEN`: curl -H …';

it('knows the table of the backend', () => {
  expect(CODES.length).toBeGreaterThan(35);
});

describe.each(CODES)('%s', code => {
  it('has words', () => {
    expect(codeWords(english.trans, code)).not.toBeNull();
  });

  it('is told in English as the backend says it, without remedies for programs', () => {
    const problem = new PaiError(400, { code, message: 'Of x.', hint: HINT });
    const { what, remedy } = problemWords(english.trans, problem);
    expect(what).toBe('Of x.');
    expect(remedy).not.toMatch(FOR_PROGRAMS);
  });

  it('is told in Chinese, with what it is about behind', () => {
    const problem = new PaiError(400, { code, message: 'Of x.', hint: HINT });
    const { what, remedy } = problemWords(chinese, problem);
    expect(what).toMatch(HAN);
    expect(what).toContain('Of x.');
    expect(remedy).not.toMatch(FOR_PROGRAMS);
    expect(remedy === '' || HAN.test(remedy)).toBe(true);
  });
});
