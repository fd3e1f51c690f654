import js from '@eslint/js';
import jupyter from '@jupyter/eslint-plugin';
import prettier from 'eslint-plugin-prettier/recommended';
import { defineConfig } from 'eslint/config';
import globals from 'globals';
import tseslint from 'typescript-eslint';

/** Packages that draw; what decides must not know them. */
const DRAWING = [
  'react',
  'react-dom',
  '@lumino/widgets',
  '@jupyterlab/ui-components',
  '@jupyterlab/apputils'
];

export default defineConfig([
  { ignores: ['node_modules', 'lib', 'coverage', '**/*.d.ts', 'src/api'] },
  js.configs.recommended,
  { plugins: { jupyter } },
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [
      tseslint.configs.recommendedTypeChecked,
      jupyter.configs.recommended
    ],
    languageOptions: {
      globals: globals.browser,
      parserOptions: {
        project: ['tsconfig.json', 'test/tsconfig.json'],
        tsconfigRootDir: import.meta.dirname
      }
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/naming-convention': [
        'error',
        {
          selector: 'interface',
          format: ['PascalCase'],
          custom: { regex: '^I[A-Z]', match: true }
        }
      ],
      // Constants and types of one name (tokens, option namespaces) are JupyterLab's custom.
      '@typescript-eslint/no-namespace': 'off',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_' }
      ],
      // Lumino's connect takes a method and its `this` apart.
      '@typescript-eslint/unbound-method': 'off',
      // Commands, the list and its model are needed at activation; pages are loaded when opened.
      'jupyter/prefer-lazy-imports': [
        'error',
        { ignoreImports: ['./*', '../*'] }
      ],
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'no-console': 'error',
      'prefer-arrow-callback': 'error'
    }
  },
  {
    files: [
      'src/**/model.ts',
      'src/request.ts',
      'src/stream.ts',
      'src/types.ts'
    ],
    rules: { 'no-restricted-imports': ['error', { paths: DRAWING }] }
  },
  {
    files: ['src/**/*.ts', 'src/**/*.tsx'],
    ignores: ['src/request.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        'fetch',
        'WebSocket',
        'EventSource',
        'XMLHttpRequest'
      ]
    }
  },
  // Labels in test data are values of the wire.
  {
    files: ['test/**/*.ts', 'test/**/*.tsx'],
    rules: { 'jupyter/no-untranslated-string': 'off' }
  },
  {
    files: ['**/*.mjs', '**/*.js', '**/*.cjs'],
    languageOptions: { globals: globals.node }
  },
  prettier
]);
