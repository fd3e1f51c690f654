/**
 * Images of the jobs that were submitted in this browser, the latest first.
 */

import type { Json } from './paths';
import { isList, memberOf, textOf } from './paths';

const KEY = 'jupyter-pai:images';
const MOST = 8;

/** The images that a document names. */
export function imagesOf(value: Json | undefined): string[] {
  const needed = memberOf(value, 'prerequisites');
  const named = (isList(needed) ? needed : [])
    .filter(each => memberOf(each, 'type') === 'dockerimage')
    .map(each => memberOf(each, 'uri'));
  return [memberOf(value, 'image'), ...named].map(textOf).filter(Boolean);
}

/** Images that were used lately. */
export function recentImages(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(found) ? found.map(textOf).filter(Boolean) : [];
  } catch {
    // No storage, or what another program has put there: nothing is known.
    return [];
  }
}

/** Keep the images of a document that was submitted. */
export function remember(value: Json | undefined): void {
  const images = [...new Set([...imagesOf(value), ...recentImages()])];
  try {
    localStorage.setItem(KEY, JSON.stringify(images.slice(0, MOST)));
  } catch {
    // A browser that keeps nothing offers nothing the next time.
  }
}
