/**
 * Wire values for tests: valid by default, changed where a test cares.
 */

import type {
  ICellsUse,
  IClusterUse,
  IDoctorReport,
  IFault,
  IGuide,
  IJobDetail,
  IJobSummary,
  INodeUse,
  IOrphan,
  IRunningJob,
  IShare,
  ITask,
  IVirtualClusterUse,
  IWaitingJob,
  IWhy
} from '../src/types';

/** A list row. */
export function summary(change: Partial<IJobSummary> = {}): IJobSummary {
  return {
    uid: 'j1',
    id: 'ada~first',
    name: 'first',
    username: 'ada',
    alias: 'first',
    state: 'RUNNING',
    phase: 'running',
    why: '',
    whyWording: null,
    virtualCluster: 'default',
    submissionTime: '2026-11-21T10:00:00Z',
    launchedTime: '2026-11-21T10:00:01Z',
    completedTime: null,
    retries: 0,
    totalTaskNumber: 1,
    totalGpuNumber: 1,
    exitStatus: null,
    warnings: 0,
    gpuTypes: [],
    ...change
  };
}

/** A page of rows with these names; uid equals name. */
export function page(...names: string[]): unknown {
  const data = names.map(name =>
    summary({ uid: name, id: `ada~${name}`, name })
  );
  return { totalCount: data.length, data };
}

/** A running task that the database does not know. */
export function orphan(task: string, change: Partial<IOrphan> = {}): IOrphan {
  return {
    task,
    database: 'd1',
    state: 'running',
    since: '2026-11-21T09:00:00Z',
    seenAt: '2026-11-21T10:00:00Z',
    why: 'it carries no record of its job',
    endedBy: '',
    ...change
  };
}

/** Why a job waits for GPUs. */
export function why(change: Partial<IWhy> = {}): IWhy {
  return {
    waiting: {
      group: 'ada~first/default',
      cause: 'priority',
      vc: 'vision',
      priority: 5,
      leafType: 'TITANX',
      needed: 4,
      largestTask: 4,
      owned: 8,
      free: 0,
      largestFree: 0,
      within: '',
      putOffS: 0,
      holders: [
        {
          group: 'bob~night/default',
          user: 'bob',
          vc: 'vision',
          priority: 10,
          gpus: 8,
          until: null
        }
      ],
      nodes: [],
      lacks: [],
      cap: null,
      booked: null,
      position: 2,
      waiting: 5,
      overtaken: 0,
      startsAt: null,
      restsOn: [],
      changes: [],
      texts: {
        en: { sentence: 'It needs 4 GPUs.', remedy: 'Wait.', estimate: '' },
        zh_CN: {
          sentence: '需要 4 个 GPU。',
          remedy: '请等待。',
          estimate: ''
        }
      }
    },
    id: 'ada~first',
    state: 'WAITING',
    phase: 'queued',
    sentence: 'It needs 4 GPUs.',
    sentenceWording: null,
    doubt: '',
    doubtWording: null,
    asOf: '2026-11-21T10:00:00Z',
    current: true,
    ...change
  };
}

/** A running task. */
export function task(change: Partial<ITask> = {}): ITask {
  return {
    uid: 'j1-worker-0-0',
    role: 'worker',
    index: 0,
    alias: 'first--worker-0',
    attempt: 0,
    state: 'RUNNING',
    phase: 'running',
    node: 'carol',
    address: '127.0.0.1',
    gpus: [0],
    gpuType: 'TITANX',
    ports: { jupyter: [15001] },
    startedTime: '2026-11-21T10:00:01Z',
    completedTime: null,
    exit: null,
    keptUntil: null,
    sshCommand: 'ssh first--worker-0@127.0.0.1 -p 2222',
    ...change
  };
}

/** A running job with one task and one service. */
export function detail(change: Partial<IJobDetail> = {}): IJobDetail {
  return {
    ...summary(),
    address: '',
    warnings: [],
    dialect: 'scm',
    description: '',
    endAt: null,
    idle: null,
    doubt: '',
    doubtWording: null,
    outputPath: '',
    ruleWarning: '',
    ruleWarningWording: null,
    sweep: '',
    notebook: '',
    image: 'image',
    attempt: 0,
    stopReason: '',
    exit: null,
    retryDetails: { user: 0, platform: 0, resource: 0 },
    version: 1,
    sshCommand: 'ssh first@127.0.0.1 -p 2222',
    taskRoles: [{ name: 'worker', taskStatuses: [task()] }],
    services: [
      {
        label: 'jupyter',
        role: 'worker',
        index: 0,
        alias: 'first--jupyter',
        port: 15001,
        url: 'http://first--jupyter.localhost:9000/',
        pathUrl: '/s/first--jupyter/',
        state: 'RUNNING'
      }
    ],
    ...change
  };
}

/** Eight GPUs of one node, all free. */
export function cells(change: Partial<ICellsUse> = {}): ICellsUse {
  return {
    leafType: 'V100',
    pinnedCell: '',
    shapes: { 'V100-NODE': 1 },
    owned: 8,
    guaranteed: 0,
    opportunistic: 0,
    reserved: 0,
    bad: 0,
    free: 8,
    ...change
  };
}

/** A running job of that name. */
export function running(
  name: string,
  change: Partial<IRunningJob> = {}
): IRunningJob {
  return {
    uid: name,
    id: `ada~${name}`,
    name,
    username: 'ada',
    tasks: 1,
    gpus: 4,
    opportunistic: false,
    ...change
  };
}

/** Waiting jobs of these names, in this order in one queue. */
export function queue(...names: string[]): IWaitingJob[] {
  return names.map((name, place) => ({
    uid: name,
    id: `ada~${name}`,
    name,
    username: 'ada',
    gpus: 4,
    queue: 'vision:10',
    position: place + 1,
    waiting: names.length
  }));
}

/** A virtual cluster where nothing runs. */
export function virtualCluster(
  change: Partial<IVirtualClusterUse> = {}
): IVirtualClusterUse {
  return {
    name: 'vision',
    granted: true,
    mostGpus: null,
    cells: [cells()],
    running: [],
    unlistedJobs: 0,
    unlistedGpus: 0,
    waiting: change.queue?.length ?? 0,
    queue: [],
    ...change
  };
}

/** A node with eight GPUs. */
export function node(change: Partial<INodeUse> = {}): INodeUse {
  return {
    name: 'node-a',
    ready: true,
    schedulable: true,
    reason: '',
    gpuTypes: ['V100'],
    gpus: 8,
    usedGpus: 3,
    badGpus: 0,
    cpus: 64,
    usedCpus: 12,
    memoryMb: 524288,
    usedMemoryMb: 1536,
    otherGpus: 0,
    otherCpus: 0,
    otherMemoryMb: 0,
    ...change
  };
}

/** A user's view of a cluster with one virtual cluster and one node. */
export function clusterUse(change: Partial<IClusterUse> = {}): IClusterUse {
  return {
    user: 'ada',
    admin: false,
    shared: false,
    images: [],
    virtualClusters: [virtualCluster()],
    nodes: [node()],
    ...change
  };
}

/** Wait until a condition holds, or fail after five seconds. */
export async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 5000;
  while (!condition()) {
    if (Date.now() > deadline) {
      throw new Error('the condition did not come true within 5 s');
    }
    await new Promise(resolve => setTimeout(resolve, 2));
  }
}

/** How a task is reached. */
export function guide(change: Partial<IGuide> = {}): IGuide {
  return {
    alias: 'first',
    host: 'gateway.example.org',
    port: 2222,
    user: 'first',
    identity: '/home/ada/.ssh/pai',
    directory: '/work',
    hostKey: 'ssh-ed25519 AAAA',
    fingerprint: 'SHA256:abc',
    command: 'ssh first',
    plainCommand: 'ssh -p 2222 first@gateway.example.org',
    included: true,
    debugger: false,
    links: [
      {
        editor: 'vscode',
        name: 'VS Code',
        url: 'vscode://vscode-remote/ssh-remote+first/work?windowId=_blank'
      },
      { editor: 'zed', name: 'Zed', url: 'zed://ssh/first/work' }
    ],
    pycharm: {
      server: 'first',
      host: 'first',
      port: 2222,
      username: 'first',
      authentication: 'OpenSSH config and authentication agent',
      interpreter: '/usr/bin/python3',
      mapping: '$PROJECT_DIR$ -> /work'
    },
    sharedBy: null,
    only: [],
    until: null,
    ...change
  };
}

/** A share of ada's job with bob. */
export function share(change: Partial<IShare> = {}): IShare {
  return {
    job: 'ada~first',
    uid: 'j1',
    alias: 'first',
    user: 'bob',
    isLink: false,
    services: [],
    only: [],
    createdBy: 'ada',
    createdAt: '2026-11-21T10:00:00Z',
    expiresAt: null,
    ...change
  };
}

/** One program that will work, and one that will not. */
export function report(): IDoctorReport {
  const texts = {
    en: { what: 'There is no tar.', remedy: 'Install tar.' },
    zh_CN: { what: '没有 tar。', remedy: '请安装 tar。' }
  };
  return {
    alias: 'first',
    works: false,
    clients: [
      { client: 'ssh', name: 'OpenSSH', works: true, findings: [] },
      {
        client: 'vscode',
        name: 'VS Code',
        works: false,
        findings: [{ code: 'no-tool', blocking: true, texts }]
      }
    ],
    leftBehind: ''
  };
}

/** A fault without a place, of a backend that sends English alone. */
export function fault(change: Partial<IFault> = {}): IFault {
  return {
    path: '',
    message: 'm',
    line: null,
    column: null,
    hint: '',
    wording: null,
    hintWording: null,
    ...change
  };
}
