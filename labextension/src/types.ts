/**
 * The wire contract of the backend (`docs/rest.md`) under the panel's names.
 *
 * The shapes are those of `api/schema.ts`, which `make contract` writes from the backend's models: of them those that are
 * named here. Field names are the wire's. Times are ISO 8601 UTC strings.
 */

import type { State } from './api/schema';

export type {
  CapReached as ICap,
  CellsUseWire as ICellsUse,
  ClusterUseWire as IClusterUse,
  DoctorReport as IDoctorReport,
  DocumentWarning as IDocumentWarning,
  ErrorBody as IErrorBody,
  Event as IJobEvent,
  Fault as IFault,
  FindingWire as IFinding,
  Guide as IGuide,
  Holder as IHolder,
  IdleWire as IIdle,
  JobDetail as IJobDetail,
  JobExit as IJobExit,
  JobOutput as IJobOutput,
  JobPage as IJobPage,
  MovedJobs as IMoved,
  NodeUseWire as INodeUse,
  OrphanList as IOrphanList,
  OrphanShown as IOrphan,
  Phase as JobPhase,
  PlacedEvent as IPositionedEvent,
  Released as IReleased,
  RoleWire as ITaskRole,
  RunningJob as IRunningJob,
  ServiceWire as IService,
  ShareList as IShareList,
  ShareWire as IShare,
  State as JobState,
  Summary as IJobSummary,
  TaskExitWire as ITaskExit,
  TaskWire as ITask,
  Trial as ITrial,
  Ticket as ITicket,
  Told as ITold,
  Validation as IVerdict,
  VirtualClusterUse as IVirtualClusterUse,
  Waiting as IWaiting,
  WaitingJob as IWaitingJob,
  Why as IWhy
} from './api/schema';

/** Which of a task's outputs is meant. */
export type LogStream = 'all' | 'stdout' | 'stderr';

/** Whether a job or task in this state is final. */
export function isFinal(state: State): boolean {
  return state === 'STOPPED' || state === 'SUCCEEDED' || state === 'FAILED';
}
