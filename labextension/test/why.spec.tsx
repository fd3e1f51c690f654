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

  it('tells when it is expected to start, and that this is no promise', () => {
    const at = new Date();
    at.setHours(14, 20, 0, 0);
    const { waiting } = why();
    const estimate = 'It rests on run times that jobs declare.';
    const texts = { en: { ...waiting!.texts.en, estimate } };
    const host = shown(
      waits,
      why({ waiting: { ...waiting!, texts, startsAt: at.toISOString() } })
    );
    expect(host.textContent).toContain(estimate);
    expect(host.textContent).toMatch(
      /Expected to start at about (14:20|02:20 PM), if no new job comes first\./
    );
  });

  it('tells the limit that is reached with what counts against it', () => {
    const { waiting } = why();
    const cap = {
      user: 'ada',
      vc: 'vision',
      gpus: 8,
      tasks: null,
      jobs: null,
      sweep: '',
      runningGpus: 6,
      runningTasks: 3,
      runningJobs: 1,
      never: false
    };
    const host = shown(waits, why({ waiting: { ...waiting!, cap } }));
    expect(host.textContent).toContain(
      'Limit of ada, vision: 6 of 8 GPUs at once.'
    );
  });

  it('names those who still run on the GPUs that are kept for it', () => {
    const { waiting } = why();
    const host = shown(waits, why({ waiting: { ...waiting!, cause: 'kept' } }));
    expect(host.querySelector('summary')?.textContent).toBe(
      'Jobs that still run on the GPUs reserved for it'
    );
  });

  it('leads to the queue', () => {
    const host = document.createElement('div');
    const onQueue = jest.fn();
    const props = { trans, job: waits, why: why(), onQueue };
    flushSync(() => createRoot(host).render(<WhyNote {...props} />));
    host.querySelector('button')?.click();
    expect(onQueue).toHaveBeenCalledTimes(1);
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
