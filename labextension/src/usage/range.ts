/**
 * The times that usage is shown of. Days are those of UTC, as the ledger has them.
 */

/** A time by its name; `own` is given by its days. */
export type RangeName = 'week' | 'month' | 'last-month' | 'quarter' | 'own';

/** Two moments, ISO 8601; without an end it lasts until now. */
export interface IBounds {
  readonly since: string;
  readonly until?: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;

function day(at: number): string {
  return new Date(at).toISOString();
}

/** When a named time begins and ends, as of a moment in milliseconds. Weeks begin on Monday. */
export function boundsOf(
  range: Exclude<RangeName, 'own'>,
  now: number
): IBounds {
  const at = new Date(now);
  const [year, month, date] = [
    at.getUTCFullYear(),
    at.getUTCMonth(),
    at.getUTCDate()
  ];
  switch (range) {
    case 'week':
      return {
        since: day(Date.UTC(year, month, date - ((at.getUTCDay() + 6) % 7)))
      };
    case 'month':
      return { since: day(Date.UTC(year, month, 1)) };
    case 'last-month':
      return {
        since: day(Date.UTC(year, month - 1, 1)),
        until: day(Date.UTC(year, month, 1))
      };
    case 'quarter':
      return { since: day(Date.UTC(year, month, date - 89)) };
  }
}

/** From the beginning of one day until the end of another, such as 2026-11-25; null unless both are days in order. */
export function boundsOfDays(first: string, last: string): IBounds | null {
  const [since, until] = [first, last].map(each =>
    /^\d{4}-\d{2}-\d{2}$/.test(each) ? Date.parse(`${each}T00:00:00Z`) : NaN
  );
  return since <= until
    ? { since: day(since), until: day(until + DAY_MS) }
    : null;
}
