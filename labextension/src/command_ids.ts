/**
 * The names of commands, which other extensions may execute.
 */

/** Every command of the panel. */
export namespace CommandIDs {
  /** Show the list of jobs. */
  export const showJobs = 'pai:show-jobs';
  /** Read the list again. */
  export const refresh = 'pai:refresh';
  /** Open an empty document to type or paste a job into. */
  export const newJob = 'pai:new-job';
  /** Choose a document on this computer and open it for submission. */
  export const importFile = 'pai:import-file';
  /** Open a document of the Jupyter file browser for submission. */
  export const importDocument = 'pai:import-document';
  /** Write the open document back to its file. */
  export const saveDocument = 'pai:save-document';
  /** Keep the open document as a template. */
  export const saveTemplate = 'pai:save-template';
  /** Submit the open document. */
  export const submit = 'pai:submit';
  /** Show everything about a job. */
  export const openJob = 'pai:open-job';
  /** Open a service of a job in a new browser tab. */
  export const openService = 'pai:open-service';
  /** Copy the SSH command of a job or task. */
  export const copySsh = 'pai:copy-ssh';
  /** Show how editors and other programs reach a job, and which will work. */
  export const connect = 'pai:connect';
  /** Open a terminal in a task. */
  export const openTerminal = 'pai:open-terminal';
  /** Run VS Code in a task, and open it in a new browser tab. */
  export const openCode = 'pai:open-code';
  /** Open a document for a job with TensorBoard of another job's output. */
  export const newBoard = 'pai:new-tensorboard';
  /** Stop a job, after asking. */
  export const stopJob = 'pai:stop-job';
  /** Run a job that has ended again. */
  export const restartJob = 'pai:restart-job';
  /** Show all jobs as a table in the main area. */
  export const showTable = 'pai:show-job-table';
  /** Stop, restart, clone, tag or delete many jobs. */
  export const changeJobs = 'pai:change-jobs';
  /** Open the document of a job for another submission. */
  export const cloneJob = 'pai:clone-job';
  /** Delete a job that has ended, after asking. */
  export const deleteJob = 'pai:delete-job';
  /** Show who uses the cluster, and who waits. */
  export const showCluster = 'pai:show-cluster';
  /** Let a waiting job stand elsewhere in its queue. */
  export const moveJob = 'pai:move-job';
  /** End a task that the database does not know, after asking. */
  export const endOrphan = 'pai:end-orphan';
  export const vcRules = 'pai:vc-rules';
  /** Release tasks that are kept for debugging. */
  export const releaseJob = 'pai:release-job';
  /** Run the notebook in front as a job. */
  export const runNotebook = 'pai:run-notebook';
  /** Run a program of the Jupyter file browser, or of the editor in front, as a job. */
  export const runProgram = 'pai:run-program';
  /** Open the notebook of a job with its outputs, at the cell that failed. */
  export const openNotebook = 'pai:open-notebook';
  /** Show the jobs of a sweep. */
  export const openSweep = 'pai:open-sweep';
  /** Submit the open document as a sweep. */
  export const submitSweep = 'pai:submit-sweep';
  /** Show who may sign in, and what each may do. */
  export const showPeople = 'pai:show-people';
  /** Add a user, after asking for their rights. */
  export const addUser = 'pai:add-user';
  /** Change what a user may do. */
  export const editUser = 'pai:edit-user';
  /** Give a user a new password, which is shown once. */
  export const newPassword = 'pai:new-password';
  /** Refuse all requests and logins of a user, or end that. */
  export const disableUser = 'pai:disable-user';
  /** Remove a user, after saying what becomes of what they have. */
  export const removeUser = 'pai:remove-user';
  /** Add a group of users, after asking what its members may use. */
  export const addGroup = 'pai:add-group';
  /** Change a group of users. */
  export const editGroup = 'pai:edit-group';
  /** Remove a group of users, after asking. */
  export const removeGroup = 'pai:remove-group';
  /** Reserve GPUs of a virtual cluster for a time. */
  export const reserve = 'pai:reserve';
  /** Remove a reservation, after asking. */
  export const removeReservation = 'pai:remove-reservation';
  /** Show what was used, what it cost, and budgets. */
  export const showUsage = 'pai:show-usage';
  /** Show where messages about the user's jobs go. */
  export const showNotifications = 'pai:show-notifications';
  /** Have messages about jobs sent from now on, after asking where to. */
  export const addNotification = 'pai:add-notification';
  /** Send a test message, and say whether it has arrived. */
  export const testNotification = 'pai:test-notification';
  /** End a notification, after asking. */
  export const removeNotification = 'pai:remove-notification';
  /** Show the files of the backend's storage. */
  export const showFiles = 'pai:show-files';
  /** Upload files of this computer, after asking which. */
  export const uploadFiles = 'pai:upload-files';
  /** Make a folder of the backend's storage, after asking for its name. */
  export const newFolder = 'pai:new-folder';
  /** Delete a file or a folder of the backend's storage, after asking. */
  export const deleteFile = 'pai:delete-file';
  /** Use another backend, after asking which. */
  export const switchContext = 'pai:switch-context';
  /** Start a job and a notebook that computes in it. */
  export const newKernel = 'pai:new-kernel';
}
