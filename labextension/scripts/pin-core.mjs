/**
 * Pin every JupyterLab package to the versions of one JupyterLab release.
 *
 * A registry mirror can lag: one @jupyterlab package is at the newest patch,
 * another is not, and then caret ranges inside JupyterLab cannot be resolved.
 * The list of versions that were released together is in @jupyterlab/core-meta.
 *
 * Run `jlpm pin && jlpm install` after changing the core-meta version in
 * package.json; commit package.json and yarn.lock together.
 */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Pins that no JupyterLab release gives, each with its reason. */
const EXTRA = {
  // 2.3.2 lists optional platform packages that are not all published.
  '@rspack/binding': '2.2.9',
  '@rspack/core': '2.2.9',
  // Newer declaration files need TypeScript 5.7 ("Uint8Array is not generic").
  lib0: '0.2.111'
};

/** The manifest of JupyterLab `version`, as published with @jupyterlab/core-meta. */
function coreManifest(version) {
  const folder = mkdtempSync(join(tmpdir(), 'pin-core-'));
  try {
    const archive = execFileSync(
      'npm',
      ['pack', '--silent', `@jupyterlab/core-meta@${version}`],
      { cwd: folder, encoding: 'utf8' }
    ).trim();
    execFileSync('tar', ['xzf', archive], { cwd: folder });
    return JSON.parse(
      readFileSync(join(folder, 'package', 'core.package.json'), 'utf8')
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Exact versions of all @jupyterlab packages of a release, plus EXTRA, sorted by name. */
function pins(manifest) {
  const released = Object.entries(manifest.resolutions)
    .filter(([name]) => name.startsWith('@jupyterlab/'))
    .map(([name, range]) => [name, range.replace(/^[~^]/, '')]);
  return Object.fromEntries(
    [...released, ...Object.entries(EXTRA)].sort(([a], [b]) => (a < b ? -1 : 1))
  );
}

const file = new URL('../package.json', import.meta.url);
const own = JSON.parse(readFileSync(file, 'utf8'));
const release = own.devDependencies['@jupyterlab/core-meta'];
own.resolutions = pins(coreManifest(release));
writeFileSync(file, JSON.stringify(own, null, 2) + '\n');
process.stdout.write(
  `pinned ${Object.keys(own.resolutions).length} packages to JupyterLab ${release}\n`
);
