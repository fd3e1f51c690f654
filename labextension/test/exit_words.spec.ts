import { nullTranslator } from '@jupyterlab/translation';
import * as fs from 'fs';
import * as path from 'path';
import { exitWords, jobExitWords } from '../src/exit_words';

const CATALOGUE = JSON.parse(
  fs.readFileSync(
    path.join(
      __dirname,
      '../../jupyter_pai/locale/zh_CN/LC_MESSAGES/jupyter_pai.json'
    ),
    'utf-8'
  )
) as Record<string, readonly string[] | undefined>;
const trans = nullTranslator.load('jupyter_pai');
/** The catalogue as JupyterLab reads it. */
const chinese = {
  ...trans,
  __: (id: string, ...args: unknown[]) =>
    (CATALOGUE[id]?.[0] ?? id).replace(/%(\d)/g, (_, place) =>
      String(args[Number(place) - 1])
    )
};

const killed = {
  phrase: 'Killed',
  message: 'signal 9 (KILL) ended it (ended by signal 9 (KILL))',
  remedy:
    'Watch its memory, and ask for more with memoryMB, or use less of it.',
  status: 137
};

describe('Words of ends', () => {
  it('are the backend’s in English', () => {
    expect(exitWords(trans, killed)).toEqual({
      what: killed.message,
      remedy: killed.remedy
    });
  });

  it('are the page’s language before the message elsewhere', () => {
    const lost = {
      phrase: 'TaskLost',
      message: 'its node was lost (no word for 300 s)',
      remedy:
        'Nothing to do: it is retried automatically and does not count as a retry.',
      status: 255
    };
    expect(exitWords(chinese, lost)).toEqual({
      what: '节点丢失，或节点上看守任务的进程丢失。 its node was lost (no word for 300 s)',
      remedy: '无需处理：会自动重试，不算作一次重试。'
    });
    expect(exitWords(chinese, killed).what).toContain('信号 9 ');
  });

  it('say so where the task may have ended itself, and keep what is new', () => {
    const remedy =
      'See whether its command ends processes, or removes files, that are not its own. The end of its log says more.';
    const own = { phrase: 'TaskLost', message: 'gone', remedy, status: 255 };
    expect(exitWords(chinese, own).remedy).toContain('不属于它的进程');
    const unknown = { phrase: 'New', message: 'm', remedy: 'r', status: 1 };
    expect(exitWords(chinese, unknown)).toEqual({ what: 'm', remedy: 'r' });
  });

  it('of a job are those of the task that decided it', () => {
    const exit = { ...killed, code: null, signal: 9, reason: 'signalled' };
    const job = {
      exit: { ...killed, role: 'worker', index: 1, cause: null },
      taskRoles: [
        { name: 'worker', taskStatuses: [{ index: 0 }, { index: 1, exit }] }
      ]
    } as unknown as Parameters<typeof jobExitWords>[1];
    expect(jobExitWords(chinese, job).what).toContain('信号 9 ');
    const stopped = {
      exit: { status: -210, message: 'stopped by ada', remedy: '' },
      taskRoles: []
    } as unknown as Parameters<typeof jobExitWords>[1];
    expect(jobExitWords(chinese, stopped).what).toBe('stopped by ada');
  });
});
