/**
 * What calls of the backend are given.
 */

import type { PartialJSONObject } from '@lumino/coreutils';
import type { IShare, JobNews, LogStream, NotificationChannel } from '../types';

/** What a user may do, as administrators and managers set it. */
export interface IUserRights {
  readonly email?: string;
  readonly admin?: boolean;
  readonly grouplist?: readonly string[];
  /** Virtual clusters that are granted to the user, beside those of their groups. */
  readonly virtualCluster?: readonly string[];
  readonly manages?: readonly string[];
}

/** A change of a user. */
export interface IUserChange extends IUserRights {
  readonly newPassword?: string;
  readonly mustChangePassword?: boolean;
}

/** A user who is added. */
export interface INewUser extends IUserRights {
  readonly username: string;
  readonly password: string;
  readonly mustChangePassword: boolean;
}

/** What of a group is set; what is not given stays. */
export interface IGroupChange {
  readonly description?: string;
  /** Its name at the provider that signs users in. */
  readonly externalName?: string;
  /** All users in it. */
  readonly members?: readonly string[];
  /** All virtual clusters that members may use by it. */
  readonly virtualClusters?: readonly string[];
  readonly manages?: readonly string[];
}

/** A notification that is added. */
export interface INewNotification {
  readonly channel: NotificationChannel;
  /** A mail address, empty for that of the account; else a URL, which is kept secret. */
  readonly to: string;
  /** Signs the messages; empty: none does. */
  readonly secret: string;
  readonly news: readonly JobNews[];
  /** The shortest wait that is news of the kind `waited`, in seconds. */
  readonly waitedS: number;
}

/** A kernel of the Jupyter server that runs in a job, or ran there. */
export interface IJobKernel {
  readonly id: string;
  readonly state: 'waiting' | 'connecting' | 'connected' | 'ended';
  /** What it waits for, or why it has ended. */
  readonly reason: string;
}

/** A terminal in a task. */
export interface ITerminalPlace {
  readonly job: string;
  readonly role: string;
  readonly index: number;
  readonly name: string;
}

/** What is known of one of the user's terminals in a task. */
export interface ITerminalSession {
  readonly name: string;
  /** How many windows show it. */
  readonly clients: number;
  /** How its shell ended; null while it runs. */
  readonly ended: object | null;
}

/** Which tasks' output is meant. */
export interface ILogTarget {
  readonly role: string;
  readonly index: number;
  readonly stream: LogStream;
  /** Run of the task, from 0; the latest one when absent. */
  readonly attempt?: number;
}

/** A piece of a log. */
export interface ILogPage {
  readonly bytes: ArrayBuffer;
  /** Offset of the first byte; bytes count from the first ever written. */
  readonly offset: number;
  /** Offset behind the last byte. */
  readonly next: number;
}

/** How a private key is written. */
export type KeyFormat = 'openssh' | 'pem' | 'ppk' | 'ppk2';

/** A private key, and the name of its file. */
export interface IKeyFile {
  readonly name: string;
  readonly text: string;
}

/** What to list. */
export interface IJobQuery {
  readonly keyword?: string;
  /** All states when empty or absent. */
  readonly states?: readonly string[];
  readonly username?: string;
  readonly vc?: string;
  /** GPU types, separated by commas. */
  readonly gpuType?: string;
  readonly tag?: string;
  /** The earliest time of submission, as the wire has times; none when absent. */
  readonly since?: string;
  /** `field,ASC` or `field,DESC`; newest first when absent. */
  readonly order?: string;
  readonly offset?: number;
  readonly limit: number;
}

/** Where in its queue a job shall stand: beside another job, or first. */
export type QueuePlace =
  | { readonly before: string }
  | { readonly after: string }
  | { readonly to: 'first' };

/** Others' jobs that the user may enter, and the user's that others may. */
export interface IShares {
  readonly received: readonly IShare[];
  readonly given: readonly IShare[];
}

/** How a document is submitted. */
export interface ISubmissionTerms {
  /** The job's name instead of the document's. */
  readonly name?: string;
  /** Stop the job that has the name. */
  readonly replace?: boolean;
  /** The same submission again, with its key, makes no second job: its first answer may have been lost. */
  readonly key?: string;
}

/** A job in the forms that an output of a cell has: data by media type. */
export type IJobBundle = PartialJSONObject;

/** The beginning of a file of the backend's storage. */
export interface IFileBytes {
  readonly bytes: ArrayBuffer;
  /** Bytes of the whole file. */
  readonly size: number;
  /** When it was last changed, as HTTP writes times; null when the storage does not tell. */
  readonly modified: string | null;
}

/** A part of a file on its way to the backend's storage. */
export interface IFilePart {
  readonly bytes: Blob;
  /** Where in the file it belongs. What the backend has kept behind it is dropped. */
  readonly offset: number;
  /** Bytes of the whole file. */
  readonly size: number;
  /** Whether a file of that name is replaced; it is refused otherwise. */
  readonly replace: boolean;
  /** Gives the part up. */
  readonly signal?: AbortSignal;
}

/** A document on its way to the backend. */
export interface IDocumentText {
  readonly text: string;
  /** Helps to tell JSON from YAML; empty when it never was a file. */
  readonly filename: string;
  /** Whether its secrets are masked, since it is another user's. */
  readonly isMasked?: boolean;
  /** The job whose secrets its masked values are. */
  readonly secretsOf?: string;
}

/** Where documents are kept that are not submitted. */
export type Kept = 'templates' | 'drafts';
