/**
 * What ends of tasks mean, by their class: the words of docs/exits.md, one literal call for each, so that the catalogue can
 * be checked for completeness.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IProblemWords } from './error_words';
import type { IJobDetail, ITaskExit } from './types';
import { ENGLISH } from './words';

/** What is known of the end of a task. */
export type IKnownExit = Pick<
  ITaskExit,
  'phrase' | 'message' | 'remedy' | 'status'
>;

/** What an end means and what to do: in English as the backend says it, else in the page's language, then its message. */
export function exitWords(
  trans: TranslationBundle,
  exit: IKnownExit
): IProblemWords {
  const { phrase, message, remedy, status } = exit;
  const words = classWords(trans, phrase, status - 128);
  const english = classWords(ENGLISH.trans, phrase, status - 128);
  if (!words || !english || words.what === english.what) {
    return { what: message, remedy };
  }
  const own = ownDoing(ENGLISH.trans);
  const told = remedy === english.remedy ? words.remedy : remedy;
  return {
    what: [words.what, message].filter(Boolean).join(' '),
    remedy: remedy === own ? ownDoing(trans) : told
  };
}

/** What the end of a job means: that of the task that decided it, where it is known. */
export function jobExitWords(
  trans: TranslationBundle,
  job: Pick<IJobDetail, 'exit' | 'taskRoles'>
): IProblemWords {
  const { message = '', remedy = '', role, index } = job.exit ?? {};
  const task = job.taskRoles
    .find(({ name }) => name === role)
    ?.taskStatuses.find(each => each.index === index);
  return task?.exit && task.exit.remedy === remedy
    ? exitWords(trans, { ...task.exit, message })
    : { what: message, remedy };
}

/** What to do where the task may have ended itself. */
function ownDoing(trans: TranslationBundle): string {
  return trans.__(
    'See whether its command ends processes, or removes files, that are not its own. The end of its log says more.'
  );
}

/** The words for a class of ends; null for one that this version does not know. */
export function classWords(
  trans: TranslationBundle,
  phrase: string,
  signal: number
): IProblemWords | null {
  switch (phrase) {
    case 'Stopped':
      return { what: trans.__('The task was asked to end.'), remedy: '' };
    case 'TaskLost':
      return {
        what: trans.__(
          'The node, or the process that kept the task there, was lost.'
        ),
        remedy: trans.__(
          'Nothing to do: it is retried automatically and does not count as a retry.'
        )
      };
    case 'TaskVanished':
      return {
        what: trans.__(
          "The platform's files or pod of the task were removed while it ran."
        ),
        remedy: trans.__(
          "It is retried automatically; if this happens again, find out what removes the backend's files or pods."
        )
      };
    case 'Preempted':
      return {
        what: trans.__('It was preempted by a job that comes first.'),
        remedy: trans.__(
          'Nothing: it is run again by itself, free of charge, when there is room. A higher priority class is preempted less.'
        )
      };
    case 'Evicted':
      return {
        what: trans.__('Its node ran short of memory or disk and evicted it.'),
        remedy: trans.__(
          'It is retried after a pause; ask for as much memory as it uses.'
        )
      };
    case 'Drained':
      return {
        what: trans.__('An administrator drained its node.'),
        remedy: trans.__(
          'Nothing to do: it is retried automatically and does not count as a retry.'
        )
      };
    case 'NodeRefused':
      return {
        what: trans.__(
          'Its node rejected it, most often because other pods had taken the space.'
        ),
        remedy: trans.__(
          'It is retried on another node; if all refuse it, ask the administrator what else runs there.'
        )
      };
    case 'PortConflict':
      return {
        what: trans.__(
          'Another program took one of its ports before it could.'
        ),
        remedy: trans.__(
          'Nothing to do: it is retried automatically on other ports and does not count as a retry.'
        )
      };
    case 'OutOfMemory':
      return {
        what: trans.__(
          'It used more memory than it may, and the kernel ended it.'
        ),
        remedy: trans.__('Ask for more with memoryMB, or use less.')
      };
    case 'DiskFull':
      return {
        what: trans.__('The disk of its node was full.'),
        remedy: trans.__(
          'Free disk space there, or write less; then submit it again.'
        )
      };
    case 'StorageExceeded':
      return {
        what: trans.__(
          'It filled more disk than a task may, and its node ended it.'
        ),
        remedy: trans.__('Write less, or to a storage of the team.')
      };
    case 'DeadlineExceeded':
      return {
        what: trans.__('It ran for longer than the cluster lets tasks run.'),
        remedy: trans.__(
          'Save its state on the way and go on from there in another job, or ask the administrator for more time.'
        )
      };
    case 'InputFailed':
      return {
        what: trans.__(
          'Its input could not be put in place, so its command was not run.'
        ),
        remedy: trans.__(
          'Check codeDir, outputDir and what may be read there; the end of its log says more.'
        )
      };
    case 'ImagePullFailed':
      return {
        what: trans.__('Its image could not be fetched.'),
        remedy: trans.__(
          'Check the name of the image, and the credentials of its registry.'
        )
      };
    case 'SshBarrierTimeout':
      return {
        what: trans.__(
          'The other tasks did not all answer by SSH in the time of sshbarrierTimeout.'
        ),
        remedy: trans.__(
          'See what the other tasks did; raise sshbarrierTimeout if they start slowly.'
        )
      };
    case 'StartFailed':
      return {
        what: trans.__('The engine could not start it.'),
        remedy: trans.__(
          'Correct what the message names, or ask the administrator.'
        )
      };
    case 'StartForbidden':
      return {
        what: trans.__(
          'The cluster does not allow it to start as its document asks.'
        ),
        remedy: trans.__(
          'Change what the message names, or ask the administrator to allow it.'
        )
      };
    case 'Succeeded':
      return { what: trans.__('The command succeeded.'), remedy: '' };
    case 'CommandNotExecutable':
      return {
        what: trans.__(
          'A file that the command names was found but may not be executed.'
        ),
        remedy: trans.__(
          'Make it executable with chmod +x, or name its interpreter, as in python FILE.'
        )
      };
    case 'CommandNotFound':
      return {
        what: trans.__('A program that the command names was not found.'),
        remedy: trans.__(
          'Check its spelling and PATH, and that the image or machine has it.'
        )
      };
    case 'Interrupted':
      return {
        what: trans.__(
          'Signal %1 ended it or a program it waited for; the platform did not send it.',
          signal
        ),
        remedy: trans.__(
          'See in the command who sends signals, such as timeout or kill. The end of its log says more.'
        )
      };
    case 'Killed':
      return {
        what: trans.__(
          'Signal %1 ended it or a program it waited for; the platform did not send it, and most often the machine was short of memory.',
          signal
        ),
        remedy: trans.__(
          'Watch its memory, ask for more with memoryMB, or use less.'
        )
      };
    case 'IllegalInstruction':
      return {
        what: trans.__('It ran an instruction that this CPU does not have.'),
        remedy: trans.__('Use a build of the program for the CPU of the node.')
      };
    case 'BusError':
      return {
        what: trans.__(
          'It accessed memory that does not exist, most often because /dev/shm is full.'
        ),
        remedy: trans.__(
          'Ask for more with shmMB, or use fewer data-loading processes.'
        )
      };
    case 'ArithmeticError':
      return {
        what: trans.__(
          'It made an arithmetic error, such as a division by zero.'
        ),
        remedy: trans.__('Correct the program. The end of its log says more.')
      };
    case 'BrokenPipe':
      return {
        what: trans.__('It wrote to a pipe or connection that was closed.'),
        remedy: trans.__('See which program of the command ended early.')
      };
    case 'Aborted':
      return {
        what: trans.__('It aborted, as programs do after a failed check.'),
        remedy: trans.__('The end of its log says more.')
      };
    case 'SegmentationFault':
      return {
        what: trans.__('It accessed invalid memory.'),
        remedy: trans.__(
          'Most often libraries do not go together, or there is a bug in native code. The end of its log says more.'
        )
      };
    case 'EndedBySignal':
      return {
        what: trans.__(
          'Signal %1 ended it; the platform did not send it.',
          signal
        ),
        remedy: trans.__('The end of its log says more.')
      };
    case 'CommandFailed':
      return {
        what: trans.__('The command reports failure.'),
        remedy: trans.__('The end of its log says more.')
      };
    default:
      return null;
  }
}
