const preset = require('@jupyterlab/testutils/lib/jest-config')(__dirname);

/** Packages that are published as ES modules only; jest runs CommonJS. */
const ES_MODULES = [
  '@codemirror',
  '@jupyter/(react-components|web-components|ydoc)',
  '@jupyterlab',
  '@lezer',
  '@marijn',
  '@microsoft',
  '@rjsf',
  'color-',
  'exenv-es6',
  'lib0',
  'marked',
  'nanoid',
  'vscode-ws-jsonrpc',
  'y-',
  'yaml',
  'yjs'
];

module.exports = {
  ...preset,
  // The preset's junit and GitHub reporters write files nobody reads here.
  reporters: ['default', '<rootDir>/test/result-line.cjs'],
  transform: {
    ...preset.transform,
    '^.+\\.tsx?$': ['ts-jest/legacy', { tsconfig: 'test/tsconfig.json' }]
  },
  transformIgnorePatterns: [`/node_modules/(?!${ES_MODULES.join('|')}).+`]
};
