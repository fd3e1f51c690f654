/**
 * Documents that a new job begins with.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

/** A document to begin with. */
export interface IStart {
  readonly title: string;
  readonly about: string;
  readonly filename: string;
  readonly text: string;
}

const SCM = `{
  "jobName": "hello",
  "image": "python:3.11",
  "authFile": "",
  "dataDir": "",
  "outputDir": "",
  "codeDir": "",
  "retryCount": 0,
  "taskRoles": [
    {
      "name": "task_1",
      "taskNumber": 1,
      "cpuNumber": 1,
      "memoryMB": 1024,
      "shmMB": 64,
      "gpuNumber": 0,
      "storageGB": 5,
      "minFailedTaskCount": 1,
      "minSucceededTaskCount": null,
      "command": "echo hello",
      "portList": []
    }
  ],
  "jobEnvs": {},
  "extras": {}
}
`;

const V2 = `protocolVersion: 2
name: hello
type: job
prerequisites:
  - name: image
    type: dockerimage
    uri: python:3.11
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance:
      cpu: 1
      memoryMB: 1024
      gpu: 0
    commands:
      - echo hello
`;

/** Those that every site has. */
export function starts(trans: TranslationBundle): IStart[] {
  return [
    {
      title: trans.__('A job in the form of SCM'),
      about: trans.__('One image for all task roles; the fewest fields.'),
      filename: 'job.json',
      text: SCM
    },
    {
      title: trans.__('A job of OpenPAI v2'),
      about: trans.__('Parameters, secrets, an image for each role, plugins.'),
      filename: 'job.yaml',
      text: V2
    }
  ];
}
