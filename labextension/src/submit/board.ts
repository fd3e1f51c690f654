/**
 * TensorBoard of a job that has ended: the document of a job that shows its output.
 */

import type { CommandRegistry } from '@lumino/commands';
import { reportProblem } from '../feedback';
import { JOB_ARGS, jobOf } from '../jobs/commands';
import { CommandIDs } from '../tokens';
import type { IJobDetail } from '../types';
import type { ISubmitCommandOptions } from './commands';

/** Where the service proxy comes from: in a pod by the network, elsewhere from the same machine. */
const HOST =
  'h=127.0.0.1; [ -z "${PAI_POD_IP-}" ] || case $PAI_POD_IP in *:*) h=::;; *) h=0.0.0.0;; esac';

const PORT = 'board';

/** The document. Its image is that of the job, where TensorBoard probably is. */
export function boardDocument(
  job: Pick<IJobDetail, 'name' | 'username' | 'uid' | 'image'>
): string {
  const run = `exec tensorboard --logdir "$PAI_DATA_DIR" --host "$h" --port "$PAI_CONTAINER_HOST_${PORT}_PORT_LIST"`;
  const role = {
    name: PORT,
    taskNumber: 1,
    cpuNumber: 1,
    memoryMB: 2048,
    gpuNumber: 0,
    portList: [{ label: PORT, beginAt: 0, portNumber: 1 }],
    command: `${HOST}; ${run}`
  };
  const document = {
    jobName: `${job.name}_board`,
    image: job.image,
    dataDir: `$PAI_DEFAULT_FS_URI/Output/${job.username}/${job.uid}`,
    taskRoles: [role]
  };
  return JSON.stringify(document, undefined, 2) + '\n';
}

/** Add the command; without an argument it is about the selected job of the list. */
export function addBoard(
  commands: CommandRegistry,
  options: ISubmitCommandOptions
): void {
  const { client, model, trans } = options;
  commands.addCommand(CommandIDs.newBoard, {
    label: trans.__('TensorBoard of the Output…'),
    caption: trans.__(
      'Open a document for a job with TensorBoard of the output'
    ),
    describedBy: { args: JOB_ARGS },
    isEnabled: args => jobOf(model, args) !== null,
    execute: async args => {
      const job = jobOf(model, args);
      if (job === null) {
        return;
      }
      try {
        const text = boardDocument(await client.job(job));
        (await options.open()).load(text, 'tensorboard.json');
      } catch (reason) {
        reportProblem(trans, reason);
      }
    }
  });
}
