/**
 * The wire contract of the backend (`docs/rest.md`) under the panel's names.
 *
 * The shapes are those of `api/schema.ts`, which `make contract` writes from the backend's models: of them those that are
 * named here. Field names are the wire's. Times are ISO 8601 UTC strings.
 */

import type { State } from './api/schema';

export type {
  AttemptList as IAttemptList,
  AttemptWire as IAttempt,
  BudgetWire as IBudget,
  CapReached as ICap,
  CellsUseWire as ICellsUse,
  ClusterUseWire as IClusterUse,
  DoctorReport as IDoctorReport,
  DocumentWarning as IDocumentWarning,
  DraftList as IDraftList,
  DraftWire as IDraft,
  ErrorBody as IErrorBody,
  Event as IJobEvent,
  EventList as IEventList,
  Fault as IFault,
  FetchedNotebook as IFetchedNotebook,
  FileEntry as IFileEntry,
  FileListing as IFileListing,
  FindingWire as IFinding,
  CodeServer as ICodeServer,
  Guide as IGuide,
  Holder as IHolder,
  HoldingsWire as IHoldings,
  IdleWire as IIdle,
  JobDetail as IJobDetail,
  JobExit as IJobExit,
  JobMetrics as IJobMetrics,
  JobOutput as IJobOutput,
  JobPage as IJobPage,
  LogMatch as ILogMatch,
  LogMatches as ILogMatches,
  LogTimes as ILogTimes,
  LogTimeWire as ILogTime,
  MovedJobs as IMoved,
  NodeUseWire as INodeUse,
  NotebookRun as INotebookRun,
  NotebookStep as INotebookStep,
  Announced as IAnnounced,
  AnnouncementWire as IAnnouncement,
  OrphanList as IOrphanList,
  OrphanShown as IOrphan,
  Channel as NotificationChannel,
  News as JobNews,
  NotificationWire as INotification,
  Phase as JobPhase,
  PlacedEvent as IPositionedEvent,
  Released as IReleased,
  RoleWire as ITaskRole,
  RunningJob as IRunningJob,
  ServiceWire as IService,
  ShareList as IShareList,
  MadeLink as IMadeLink,
  ShareWire as IShare,
  State as JobState,
  ContextList as IContextList,
  SubmittedSweep as ISubmittedSweep,
  Summary as IJobSummary,
  SweepShown as ISweepShown,
  SweptValues as ISweptValues,
  UserGroup as IUserGroup,
  Usage as IUsage,
  UsageRow as IUsageRow,
  UserWire as IUser,
  TaskExitWire as ITaskExit,
  TaskMetrics as ITaskMetrics,
  TaskWire as ITask,
  TemplateList as ITemplateList,
  TemplateWire as ITemplate,
  Trial as ITrial,
  Ticket as ITicket,
  Told as ITold,
  UploadState as IUploadState,
  UsePoint as IUsePoint,
  Validation as IVerdict,
  VcRulesWire as IVcRules,
  BookingList as IReservationList,
  BookingWire as IReservation,
  NewBooking as INewReservation,
  VirtualClusterUse as IVirtualClusterUse,
  Wording as IWording,
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
