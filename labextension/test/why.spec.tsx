import { nullTranslator } from '@jupyterlab/translation';
import * as React from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { WhyNote } from '../src/detail/why';
import type { IJobDetail, IWhy } from '../src/types';
import { detail, why } from './wire';

const trans = nullTranslator.load('jupyter_pai');

function shown(job: IJobDetail, reason: IWhy | null): HTMLElement {
  const host = document.createElement('div');
  const root = createRoot(host);
  flushSync(() => root.render(<WhyNote {...{ trans, job, why: reason }} />));
  return host;
}

describe('the note why a job waits', () => {
  const waits = detail({ state: 'WAITING', phase: 'queued', why: 'Short.' });

  afterEach(() => {
    document.documentElement.lang = '';
  });

  it('tells the reason, the remedy, the place and who has what it needs', () => {
    const host = shown(waits, why());
    expect(host.textContent).toContain('It needs 4 GPUs.');
    expect(host.textContent).toContain('Wait.');
    expect(host.textContent).toContain('Number 2 of 5 in the queue of vision.');
    expect(host.querySelector('li')?.textContent).toBe(
      'bob~night/default: 8 GPUs, priority 10'
    );
    expect(host.textContent).not.toContain('As of');
  });

  it.each([
    ['zh-CN', '需要 4 个 GPU。'],
    ['fr-FR', 'It needs 4 GPUs.']
  ])('speaks the language of a page in %s, or English', (lang, sentence) => {
    document.documentElement.lang = lang;
    expect(shown(waits, why()).textContent).toContain(sentence);
  });

  it('has the short sentence until the reason is known', () => {
    expect(shown(waits, null).textContent).toContain('Short.');
    expect(shown(waits, why({ waiting: null })).textContent).toContain(
      'Short.'
    );
  });

  it('says how old an answer is that is not current', () => {
    expect(shown(waits, why({ current: false })).textContent).toContain(
      'As of'
    );
  });

  it('is not there for a job that does not wait', () => {
    expect(shown(detail({ why: '' }), null).innerHTML).toBe('');
  });
});
