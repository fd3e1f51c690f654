// What a job's page tells of when the job is stopped: for being idle, and for having run as long as it may.

import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { JobDetail } from '../src/detail/overview';
import type { IIdle } from '../src/types';
import { timeText } from '../src/words';
import { detail } from './wire';

const SINCE = '2026-11-22T08:00:00Z';
const UNTIL = '2026-11-22T09:00:00Z';
const CLOCK = { timeoutS: 3600, usedBy: 'ssh', unread: {} };
const WARNING = 'It is stopped at nine.';

function shown(idle: IIdle | null, endAt: string | null = null): string {
  const host = document.createElement('div');
  const job = detail({ idle, endAt });
  const state = { job, why: null, problem: null };
  const props = {
    model: { state },
    job,
    commands: new CommandRegistry(),
    trans: nullTranslator.load('jupyter_pai')
  } as unknown as Parameters<typeof JobDetail>[0];
  flushSync(() => createRoot(host).render(<JobDetail {...props} />));
  return host.textContent ?? '';
}

describe('the longest run of a job', () => {
  it('is told by when that ends it', () => {
    expect(shown(null, UNTIL)).toContain(
      `Stopped if not done by${timeText(UNTIL)}`
    );
    expect(shown(null)).not.toContain('Stopped if');
  });
});

describe('the idle clock of a job', () => {
  it('is not shown for a job without one', () => {
    expect(shown(null)).not.toContain('used');
  });

  it('tells since when the job is not used, and when that ends it', () => {
    const text = shown({
      ...CLOCK,
      since: SINCE,
      stopAt: UNTIL,
      warned: false,
      sentence: '',
      sentenceWording: null
    });
    expect(text).toContain(`Not used since${timeText(SINCE)}`);
    expect(text).toContain(`Stopped if idle until${timeText(UNTIL)}`);
  });

  it('says so in other words once its owner is warned', () => {
    const text = shown({
      ...CLOCK,
      since: SINCE,
      stopAt: UNTIL,
      warned: true,
      sentence: WARNING,
      sentenceWording: null
    });
    expect(text).toContain(`Stopped unless used by${timeText(UNTIL)}`);
    expect(text).not.toContain('Idle clock');
  });

  it('says what holds it while GPUs cannot be looked at', () => {
    const sentence = 'Its GPUs cannot be read: no nvidia-smi.';
    const idle = {
      ...CLOCK,
      since: SINCE,
      stopAt: null,
      warned: false,
      sentence,
      sentenceWording: null
    };
    const text = shown(idle);
    expect(text).toContain(`Idle clock${sentence}`);
    expect(text).not.toContain('Stopped if idle');
  });
});
