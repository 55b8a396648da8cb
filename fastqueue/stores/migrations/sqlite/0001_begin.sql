-- NEVER is 9223372036854775807: the `due` of a job that does not wait, the `held_until` of one that is not held.

CREATE TABLE {migrations} (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL
);

CREATE TABLE {meta} (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

INSERT INTO {meta} (name, value) VALUES ('identity', lower(hex(randomblob(16))));

CREATE TABLE {jobs} (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    mode INTEGER NOT NULL,
    part TEXT NOT NULL DEFAULT '',
    run_at INTEGER NOT NULL,
    due INTEGER NOT NULL,
    held_until INTEGER NOT NULL DEFAULT 9223372036854775807,
    hold_ms INTEGER NOT NULL,
    token INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    interruptions INTEGER NOT NULL DEFAULT 0,
    payload TEXT NOT NULL,
    options TEXT,
    unique_key TEXT,
    alone_key TEXT,
    carried TEXT,
    schedule TEXT,
    error TEXT,
    failed_at INTEGER,
    created_at INTEGER NOT NULL
);

-- A row's id is the last part of every index by itself.
CREATE INDEX "{bare:jobs_lane}" ON {jobs} (queue, kind, mode, part, due) WHERE due < 9223372036854775807;

CREATE INDEX "{bare:jobs_held}" ON {jobs} (kind, held_until, alone_key) WHERE held_until < 9223372036854775807;

CREATE UNIQUE INDEX "{bare:jobs_unique}" ON {jobs} (kind, unique_key) WHERE unique_key IS NOT NULL;

CREATE INDEX "{bare:jobs_failed}" ON {jobs} (failed_at) WHERE failed_at IS NOT NULL;

CREATE TABLE {schedules} (
    name TEXT NOT NULL PRIMARY KEY,
    run_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE {held_kinds} (
    kind TEXT NOT NULL PRIMARY KEY,
    held_until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE {throttles} (
    name TEXT NOT NULL PRIMARY KEY,
    tries INTEGER NOT NULL,
    ends_at INTEGER NOT NULL
) WITHOUT ROWID;
