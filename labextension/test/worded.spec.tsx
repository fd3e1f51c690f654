/**
 * What the backend says of a document, in the language of the page: from the real catalogue.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { nullTranslator } from '@jupyterlab/translation';
import { readFileSync } from 'fs';
import { join } from 'path';
import * as React from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { WarningBoxes } from '../src/components';
import { PaiError } from '../src/problem';
import { eventWords } from '../src/detail/history';
import type { IFault, IJobEvent, IWording } from '../src/types';
import { exitWords, inWords, worded } from '../src/worded';
import { problemWords } from '../src/words';

const CATALOGUE = JSON.parse(
  readFileSync(
    join(
      __dirname,
      '../../jupyter_pai/locale/zh_CN/LC_MESSAGES/jupyter_pai.json'
    ),
    'utf8'
  )
) as Record<string, string[]>;
const chinese = {
  __: (text: string) => CATALOGUE[text]?.[0] ?? text
} as TranslationBundle;
const trans = nullTranslator.load('jupyter_pai');

const WORDING: IWording = {
  template: '{name} must be {kind}, not {given}',
  arguments: {
    name: 'taskNumber',
    kind: { template: 'a whole number', arguments: {} },
    given: { template: 'a list', arguments: {} }
  }
};
const FAULT: IFault = {
  path: '$.taskRoles[0].taskNumber',
  message: 'taskNumber must be a whole number, not a list',
  line: 3,
  column: 4,
  hint: 'Write a number like 1, without quotes, fraction or unit.',
  wording: WORDING,
  hintWording: {
    template: 'Write a number like 1, without quotes, fraction or unit.',
    arguments: {}
  }
};

it('words a fault with its nested arguments', () => {
  const said = inWords(chinese, FAULT);
  expect(said.message).toBe('taskNumber 必须是整数，不能是列表');
  expect(said.hint).toBe('请写 1 这样的数字，不带引号、小数和单位。');
  expect(said.path).toBe(FAULT.path);
});

it('leaves English as it came', () => {
  expect(inWords(trans, FAULT)).toEqual(FAULT);
});

it('stays English where the catalogue lacks the template, or a backend sends none', () => {
  const other = { template: 'new {name}', arguments: { name: 'x' } };
  expect(worded(chinese, 'new x', other)).toBe('new x');
  expect(worded(chinese, 'old', null)).toBe('old');
  expect(worded(chinese, 'old')).toBe('old');
});

it('keeps the English of an argument that it does not know', () => {
  const wording: IWording = {
    template: 'Write {kind}.',
    arguments: { kind: { template: 'a {thing}', arguments: { thing: 'new' } } }
  };
  expect(worded(chinese, 'Write a new.', wording)).toBe('请写a new。');
});

it('takes texts of arguments as they are', () => {
  const name = '{given} $& constructor';
  const wording: IWording = {
    template: '{name} is missing',
    arguments: { name }
  };
  expect(worded(chinese, `${name} is missing`, wording)).toBe(`缺少 ${name}`);
});

it('shows warnings in Chinese', () => {
  const html = renderToStaticMarkup(
    <WarningBoxes
      trans={chinese}
      warnings={[
        {
          code: 'flag-as-text',
          message: 'isDebug is a text',
          path: '$',
          hint: '',
          wording: {
            template: '{name} is a text',
            arguments: { name: 'isDebug' }
          },
          hintWording: null
        }
      ]}
    />
  );
  expect(html).toContain('isDebug 是文本');
  expect(html).not.toContain('is a text');
});

it('says a problem in its own sentence, and remedies without those for programs', () => {
  const problem = new PaiError(404, {
    code: 'NoJobError',
    message: "There is no job 'x'.",
    hint: '`pai list` shows the names of your jobs.',
    wording: {
      template: 'There is no job {name}.',
      arguments: { name: "'x'" }
    },
    hintWording: {
      template: '`pai list` shows the names of your jobs.',
      arguments: {}
    }
  });
  expect(problemWords(chinese, problem)).toEqual({
    what: "没有作业 'x'。",
    remedy: '请刷新作业列表。'
  });
});

describe('What happens to a job', () => {
  const wording: IWording = {
    template: 'task {task}: {message}',
    arguments: {
      task: 'worker-0',
      message: {
        template: '{clause} ({fact})',
        arguments: {
          clause: { template: 'the command reports failure', arguments: {} },
          fact: {
            template: 'exited with status {code}',
            arguments: { code: '3' }
          }
        }
      }
    }
  };
  const message =
    'task worker-0: the command reports failure (exited with status 3)';
  const remedy = 'The end of its log says more.';
  const event = (type: string, payload: object) =>
    eventWords(chinese, { type, payload } as IJobEvent);

  it('says how it ended and what to do', () => {
    expect(exitWords(chinese, { message, remedy, wording })).toEqual({
      what: '任务 worker-0：命令报告失败（退出状态 3）',
      remedy: '日志末尾有更多说明。'
    });
    expect(exitWords(trans, { message, remedy, wording })).toEqual({
      what: message,
      remedy
    });
  });

  it('keeps the English of what is stored without a template', () => {
    expect(exitWords(chinese, { message, remedy: 'New.' })).toEqual({
      what: message,
      remedy: 'New.'
    });
  });

  it('words the lines of its history', () => {
    const over = { state: 'FAILED', message, remedy, wording };
    expect(event('job.exit', over)).toBe(
      '结束原因 · 任务 worker-0：命令报告失败（退出状态 3） · 日志末尾有更多说明。'
    );
    const why = 'retrying after: ' + message;
    const whyWording = {
      template: 'retrying after: {reason}',
      arguments: { reason: wording }
    };
    const state = { state: 'WAITING', phase: 'backing off', why, whyWording };
    expect(event('job.state', state)).not.toMatch(/[a-z]{3,} [a-z]{3,}/);
    expect(event('job.state', { ...state, whyWording: undefined })).toContain(
      why
    );
    expect(
      event('job.underused', { text: 'old text', textWording: null })
    ).toBe('old text');
  });
});
