"""Ends a writer that has stalled in the middle of its transaction, and so holds up the writers of all processes.

The server does that by itself (``idle_in_transaction_session_timeout``) where it waits for a next command. It does not
where the process was stopped while a statement of asyncpg was being prepared: that is asked for with Flush and not with
Sync, and until the Sync comes the session is one that works (PostgreSQL's manual, "Extended Query"). No time-out of a
server before 17 ends it, and TCP sees nothing wrong with a process that is only stopped.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Connection, Double, bindparam, text

_END = text(
    """
    SELECT activity.pid, pg_terminate_backend(activity.pid)
    FROM pg_locks AS held JOIN pg_stat_activity AS activity USING (pid)
    WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
      AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (held.classid::bigint << 32 | held.objid::bigint) = :key
      AND activity.usename = session_user
      AND activity.wait_event_type = 'Client' AND activity.wait_event = 'ClientRead'
      AND activity.state_change < clock_timestamp() - make_interval(secs => :patience_s)
    """
).bindparams(bindparam("key", type_=BigInteger), bindparam("patience_s", type_=Double))


def end_stalled_writer(conn: Connection, key: int, patience_s: float) -> bool:
    """End the session that holds the advisory lock and has waited for its client for so long; whether there is one."""
    return bool(conn.execute(_END, {"key": key, "patience_s": patience_s}).all())
