/**
 * What the backend's errors mean to a user who looks at the panel.
 *
 * The backend's own remedies are for programs and shells. One literal call for each sentence, so that the catalogue can
 * be checked for completeness.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import { AwayCode } from './problem';

/** A failure in words: what happened and what to do. */
export interface IProblemWords {
  readonly what: string;
  readonly remedy: string;
}

/** The words for a code of the backend; null for one that this version does not know. */
export function codeWords(
  trans: TranslationBundle,
  code: string
): IProblemWords | null {
  switch (code) {
    case 'UnknownError':
      return {
        what: trans.__('The backend has met an error of its own.'),
        remedy: trans.__(
          'Try again. If it stays, tell an administrator when it happened.'
        )
      };
    case 'InvalidProtocolError':
      return { what: trans.__('The job document is invalid.'), remedy: '' };
    case 'InvalidParametersError':
      return { what: trans.__('The request is invalid.'), remedy: '' };
    case 'NoJobError':
      return {
        what: trans.__('The job does not exist, or is not visible to you.'),
        remedy: trans.__('Refresh the list of jobs.')
      };
    case 'NoTaskError':
      return {
        what: trans.__('The job has no such task.'),
        remedy: trans.__('Choose a task of its Overview.')
      };
    case 'NoServiceError':
      return {
        what: trans.__('The job has no such port.'),
        remedy: trans.__('Choose one of the addresses on its page.')
      };
    case 'NoVirtualClusterError':
      return {
        what: trans.__('The virtual cluster does not exist.'),
        remedy: trans.__('Choose one that the form or the page Cluster offers.')
      };
    case 'NoApiError':
      return {
        what: trans.__('The backend does not know this request.'),
        remedy: trans.__(
          'The panel and the backend are of different versions: update the older one.'
        )
      };
    case 'MethodNotAllowedError':
      return {
        what: trans.__('The backend does not know this request.'),
        remedy: trans.__(
          'The panel and the backend are of different versions: update the older one.'
        )
      };
    case 'NoKeyError':
      return { what: trans.__('The SSH key is not registered.'), remedy: '' };
    case 'NoNotificationError':
      return { what: trans.__('The notification does not exist.'), remedy: '' };
    case 'NoSecretError':
      return { what: trans.__('The secret does not exist.'), remedy: '' };
    case 'NoCertificateError':
      return {
        what: trans.__('The SSH certificate does not exist.'),
        remedy: ''
      };
    case 'NoImageError':
      return {
        what: trans.__('The machine has no such image.'),
        remedy: ''
      };
    case 'ImageInUseError':
      return {
        what: trans.__('The image is in use.'),
        remedy: trans.__('Stop what uses it first.')
      };
    case 'NoShareError':
      return {
        what: trans.__('The job is not shared with that user.'),
        remedy: trans.__('The list of shares was out of date.')
      };
    case 'NoTagError':
      return { what: trans.__('The job has no such tag.'), remedy: '' };
    case 'NoAddressError':
      return { what: trans.__('You have no such workspace name.'), remedy: '' };
    case 'NoFileError':
      return { what: trans.__('The file does not exist.'), remedy: '' };
    case 'NoStorageError':
      return {
        what: trans.__('The storage does not exist, or is not granted to you.'),
        remedy: trans.__('Ask an administrator for it.')
      };
    case 'NoTokenError':
      return { what: trans.__('The access token does not exist.'), remedy: '' };
    case 'NoGroupError':
      return { what: trans.__('The group does not exist.'), remedy: '' };
    case 'NoClusterConfigError':
      return {
        what: trans.__(
          'That version of the cluster configuration is not kept.'
        ),
        remedy: ''
      };
    case 'NoJobSshInfoError':
      return {
        what: trans.__('No task of the job can be reached by SSH now.'),
        remedy: trans.__('Wait until it runs.')
      };
    case 'NoUserError':
      return {
        what: trans.__('The user does not exist.'),
        remedy: trans.__('Check the name.')
      };
    case 'IncorrectPasswordError':
      return { what: trans.__('The password is wrong.'), remedy: '' };
    case 'NotImplementedError':
      return { what: trans.__('This backend does not do that.'), remedy: '' };
    case 'ConflictJobError':
      return {
        what: trans.__('You have a job of that name already.'),
        remedy: trans.__('Choose another name, or delete that job.')
      };
    case 'ConflictAddressError':
      return {
        what: trans.__('The workspace name is in use.'),
        remedy: trans.__('Choose another one, or stop the job that holds it.')
      };
    case 'ConflictFileError':
      return {
        what: trans.__('What is at that place does not fit.'),
        remedy: trans.__('Choose another place.')
      };
    case 'ConflictUserError':
      return {
        what: trans.__('A user of that name exists or existed.'),
        remedy: trans.__('Choose another name.')
      };
    case 'ConflictGroupError':
      return {
        what: trans.__('A group of that name exists.'),
        remedy: trans.__('Choose another name.')
      };
    case 'UserHasJobsError':
      return {
        what: trans.__('The user has jobs that have not ended.'),
        remedy: trans.__('Stop them first.')
      };
    case 'ConflictClusterConfigError':
      return {
        what: trans.__('The cluster configuration has changed meanwhile.'),
        remedy: trans.__('Read it again, and repeat the change.')
      };
    case 'NotFinishedJobError':
      return {
        what: trans.__('The job has not ended.'),
        remedy: trans.__('Stop it first.')
      };
    case 'NotWaitingJobError':
      return {
        what: trans.__('The job does not wait in a queue.'),
        remedy: trans.__('Only waiting jobs can be moved.')
      };
    case 'OtherQueueError':
      return {
        what: trans.__('The two jobs wait in different queues.'),
        remedy: trans.__(
          'Move it among jobs of its virtual cluster and priority.'
        )
      };
    case 'UnauthorizedUserError':
      return {
        what: trans.__(
          'You are not signed in to the backend, or your token has expired.'
        ),
        remedy: trans.__('Sign in again; the panel goes on by itself.')
      };
    case 'ForbiddenUserError':
      return {
        what: trans.__('You may not do this.'),
        remedy: trans.__("It needs the job's owner or an administrator.")
      };
    case 'LockedOutUserError':
      return {
        what: trans.__('An administrator has locked you out.'),
        remedy: trans.__('Ask an administrator.')
      };
    case 'PasswordChangeRequiredError':
      return {
        what: trans.__('An administrator has set your password.'),
        remedy: trans.__('Sign in again, and set one of your own.')
      };
    case 'NoEnoughQuotaError':
      return {
        what: trans.__('There is no room left.'),
        remedy: trans.__(
          'Delete files that you no longer need, or ask for more quota.'
        )
      };
    case 'ReadOnlyJobError':
      return {
        what: trans.__(
          'The job has ended or is ending, so it cannot be changed.'
        ),
        remedy: trans.__('Clone it, or run it again.')
      };
    case 'TooLargeError':
      return {
        what: trans.__('It is too large.'),
        remedy: trans.__('Send less at once.')
      };
    case 'TooManyRequestsError':
      return {
        what: trans.__('You have sent too many requests.'),
        remedy: trans.__('Wait a moment.')
      };
    case AwayCode.file:
      return {
        what: trans.__('The file on this computer has changed or is gone.'),
        remedy: trans.__('Choose it again.')
      };
    case AwayCode.backend:
      return {
        what: trans.__('The PAI backend is unavailable.'),
        remedy: trans.__('Jobs keep running. The panel tries again.')
      };
    case AwayCode.jupyter:
      return {
        what: trans.__('The Jupyter server does not answer.'),
        remedy: trans.__('Check that it still runs; the panel tries again.')
      };
    case AwayCode.silent:
      return {
        what: trans.__('No answer comes from the backend.'),
        remedy: trans.__('What is shown may be out of date; the panel waits.')
      };
    case AwayCode.extension:
      return {
        what: trans.__('The server extension of jupyter-pai is missing.'),
        remedy: trans.__(
          'Run "jupyter server extension enable jupyter_pai" and restart the Jupyter server.'
        )
      };
    default:
      return null;
  }
}
