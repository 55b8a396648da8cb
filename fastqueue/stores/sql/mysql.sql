-- The statements of the MySQL and MariaDB store.
--
-- [ text | between ] stands for the text once for each row of the values named `rows`, with `between` in between, and
-- a place whose value is a list for as many places as it has members.
--
-- 9223372036854775807 is NEVER: the `due` of a job that does not wait, the `held_until` of one that is not held.
--
-- Whoever changes jobs by their ids names the primary key: where statistics call the table small the server would
-- else walk all of it and wait for rows that others have locked. For a DELETE the server walks all the same, unless the
-- ids are a table that it is to begin with.

-- name: meta.tables
-- How many of the tables that record migrations are there: 0 or 1.
-- relies on: nothing
SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = :name;

-- name: meta.lock
-- One instance at a time migrates, until it says so or its connection ends.
-- relies on: nothing
SELECT GET_LOCK(CONCAT('fastqueue.', MD5(CONCAT(DATABASE(), '.', :name))), :seconds);

-- name: meta.unlock
-- The next instance may migrate.
-- relies on: nothing
SELECT RELEASE_LOCK(CONCAT('fastqueue.', MD5(CONCAT(DATABASE(), '.', :name))));

-- name: meta.current
-- The number of the last migration applied.
-- relies on: primary key
SELECT COALESCE(MAX(number), 0) FROM {migrations};

-- name: meta.record
-- A migration was applied.
-- relies on: nothing
INSERT INTO {migrations} (number, name, applied_at) VALUES (:number, :name, :applied_at);

-- name: meta.identity
-- The text that no other set of tables has.
-- relies on: primary key
SELECT value FROM {meta} WHERE name = 'identity';

-- name: meta.now
-- The server's clock; the store's own connections are in UTC.
-- relies on: nothing
SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED);

-- name: lanes.known
-- The lanes that a job was ever pushed into.
-- relies on: nothing
SELECT queue, kind, mode, part FROM {lanes};

-- name: lanes.kinds
-- Kinds that may be new get the row that claims of limited jobs lock.
-- relies on: nothing
INSERT INTO {held_kinds} (kind, held_until) VALUES [(:kind, 0)|, ] ON DUPLICATE KEY UPDATE kind = kind;

-- name: lanes.add
-- Lanes that may be new.
-- relies on: nothing
INSERT INTO {lanes} (queue, kind, mode, part) VALUES [(:queue, :kind, :mode, :part)|, ]
ON DUPLICATE KEY UPDATE queue = queue;

-- name: lanes.heads
-- The lanes that have waiting jobs, and when the first job of each is due: a seek a lane.
-- relies on: jobs_lane
SELECT queue, kind, mode, head
FROM (
    SELECT l.queue, l.kind, l.mode, (
        SELECT j.due FROM {jobs} j FORCE INDEX (`{bare:jobs_lane}`)
        WHERE j.queue = l.queue AND j.kind = l.kind AND j.mode = l.mode AND j.part = l.part
        ORDER BY j.due LIMIT 1
    ) AS head
    FROM {lanes} l
) lane
WHERE head < 9223372036854775807;

-- name: push.step
-- How far apart the ids of rows are that one statement inserts.
-- relies on: nothing
SELECT @@auto_increment_increment;

-- name: push.insert
-- New jobs; their ids are the statement's first and those after it, in the order given.
-- relies on: nothing
INSERT INTO {jobs} (
    queue, kind, mode, run_at, due, hold_ms,
    payload, options, unique_key, alone_key, carried, schedule, created_at
) VALUES [(
    :queue, :kind, :mode, :run_at, run_at, :hold_ms,
    :payload, :options, :unique_key, :alone_key, :carried, :schedule, :created_at
)|, ];

-- name: push.slots
-- Whoever else pushes these keys waits until this transaction has ended.
-- relies on: primary key
SELECT slot FROM {slots} FORCE INDEX (PRIMARY) WHERE slot IN (:slots) ORDER BY slot FOR UPDATE;

-- name: push.waiting
-- The jobs that wait with some keys.
-- relies on: jobs_waits
SELECT id, kind, unique_key FROM {jobs} FORCE INDEX (`{bare:jobs_waits}`) WHERE (kind, unique_key) IN (:keys);

-- name: push.unended
-- The same, asked when `push.uncommitted` has been: also those of transactions that have not ended.
-- relies on: jobs_waits
SELECT id, kind, unique_key FROM {jobs} FORCE INDEX (`{bare:jobs_waits}`) WHERE (kind, unique_key) IN (:keys);

-- name: push.uncommitted
-- The next statement sees what no transaction has committed yet.
-- relies on: nothing
SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;

-- name: push.snapshots
-- Whether the server refuses to lock a row that a transaction at REPEATABLE READ sees otherwise: ON, OFF, or no row.
-- relies on: nothing
SHOW VARIABLES LIKE 'innodb_snapshot_isolation';

-- name: push.seen
-- Those of some jobs that this transaction sees.
-- relies on: primary key
SELECT id FROM {jobs} FORCE INDEX (PRIMARY) WHERE id IN (:ids) ORDER BY id;

-- name: push.keep
-- Those of them that no claim has taken meanwhile: none will until this transaction has ended.
-- relies on: primary key
SELECT id, kind, unique_key FROM {jobs} FORCE INDEX (PRIMARY)
WHERE id IN (:ids) AND unique_key IS NOT NULL ORDER BY id FOR UPDATE;

-- name: push.move
-- Waiting jobs take other times; one that is on its way to another store is not claimed here for that.
-- relies on: primary key
UPDATE ([SELECT :id AS id, :run_at AS run_at| UNION ALL ]) moved
STRAIGHT_JOIN {jobs} j FORCE INDEX (PRIMARY) ON j.id = moved.id
SET j.due = IF(j.held_until < 9223372036854775807, j.due, moved.run_at), j.run_at = moved.run_at;

-- name: claim.look
-- The lanes of some kinds; for each, until when its kind is held back, when its first job is due, and when the first
-- hold of its kind is over. Two seeks a lane, and no lock.
-- relies on: jobs_lane
SELECT
    l.queue, l.kind, l.mode, l.part, k.held_until, (
        SELECT j.due FROM {jobs} j FORCE INDEX (`{bare:jobs_lane}`)
        WHERE j.queue = l.queue AND j.kind = l.kind AND j.mode = l.mode AND j.part = l.part
        ORDER BY j.due LIMIT 1
    ), (
        SELECT j.held_until FROM {jobs} j FORCE INDEX (`{bare:jobs_held}`)
        WHERE j.kind = l.kind ORDER BY j.held_until LIMIT 1
    )
FROM {lanes} l JOIN {held_kinds} k ON k.kind = l.kind
WHERE l.kind IN (:kinds) AND (:everywhere OR l.queue IN (:queues));

-- name: claim.later
-- When the first job after now is due in each of some lanes. Not a part of the look: where a lane comes from another
-- table, the server reads all of it for this.
-- relies on: jobs_lane
[(
    SELECT due FROM {jobs} FORCE INDEX (`{bare:jobs_lane}`)
    WHERE queue = :queue AND kind = :kind AND mode = :mode AND part = :part AND due > :now
    ORDER BY due LIMIT 1
)| UNION ALL ];

-- name: claim.lost
-- Some of the jobs whose hold is over, locked.
-- relies on: jobs_held
SELECT id FROM {jobs} FORCE INDEX (`{bare:jobs_held}`)
WHERE kind IN (:kinds) AND held_until <= :now LIMIT :portion FOR UPDATE SKIP LOCKED;

-- name: claim.free
-- They go back to their lanes; the token stays, so that their worker may still settle.
-- relies on: primary key
UPDATE {jobs} FORCE INDEX (PRIMARY) SET due = run_at, held_until = 9223372036854775807 WHERE id IN (:ids);

-- name: claim.gates
-- Who claims limited jobs of a kind goes one after the other; and until when each kind is held back.
-- relies on: primary key
SELECT kind, held_until FROM {held_kinds} FORCE INDEX (PRIMARY) WHERE kind IN (:kinds) ORDER BY kind FOR UPDATE;

-- name: claim.held
-- The held jobs of some kinds, a row each: what limits count.
-- relies on: jobs_held
SELECT kind, alone_key FROM {jobs} FORCE INDEX (`{bare:jobs_held}`)
WHERE kind IN (:kinds) AND held_until > :now AND held_until < 9223372036854775807;

-- name: claim.line
-- Places of due jobs in some lanes, in their order, behind a place, those left out whose keys are busy; no lock.
-- relies on: jobs_lane
[(
    SELECT :lane, due, id, alone_key FROM {jobs} FORCE INDEX (`{bare:jobs_lane}`)
    WHERE queue = :queue AND kind = :kind AND mode = :mode AND part = :part
        AND due >= :after_due AND due <= :now AND (due > :after_due OR id > :after_id)
        AND NOT COALESCE(alone_key IN (:busy), FALSE)
    ORDER BY due, id LIMIT :limit
)| UNION ALL ];

-- name: claim.lock_these
-- Chosen jobs, locked, as this claim would hand them out; those that others are at are left out.
-- relies on: primary key
SELECT
    id, kind, queue, payload, run_at, :now + hold_ms, hold_ms, attempts + 1, interruptions, options,
    unique_key, alone_key, mode, carried, schedule, error, token <> 0
FROM {jobs} FORCE INDEX (PRIMARY)
WHERE id IN (:ids) AND due <= :now ORDER BY id FOR UPDATE SKIP LOCKED;

-- name: claim.lock_first
-- The first due jobs of some lanes, in the same way.
-- relies on: jobs_lane
[(
    SELECT
        id, kind, queue, payload, run_at, :now + hold_ms, hold_ms, attempts + 1, interruptions, options,
        unique_key, alone_key, mode, carried, schedule, error, token <> 0
    FROM {jobs} FORCE INDEX (`{bare:jobs_lane}`)
    WHERE queue = :queue AND kind = :kind AND mode = :mode AND part = :part AND due <= :now
    ORDER BY due, id LIMIT :limit FOR UPDATE SKIP LOCKED
)| UNION ALL ];

-- name: claim.take
-- The jobs leave their lanes, held by this claim.
-- relies on: primary key
UPDATE {jobs} FORCE INDEX (PRIMARY) SET
    due = 9223372036854775807, held_until = :now + hold_ms, token = :token, attempts = attempts + 1, unique_key = NULL
WHERE id IN (:ids);

-- name: settle.claims
-- Jobs that have not failed, locked, each with the token of its claim.
-- relies on: primary key
SELECT id, token FROM {jobs} FORCE INDEX (PRIMARY) WHERE id IN (:ids) AND failed_at IS NULL ORDER BY id FOR UPDATE;

-- name: settle.gone
-- Jobs are done.
-- relies on: primary key
DELETE j FROM JSON_TABLE(:gone, '$[*]' COLUMNS (id BIGINT PATH '$')) gone
STRAIGHT_JOIN {jobs} j FORCE INDEX (PRIMARY) ON j.id = gone.id;

-- name: settle.kept
-- Jobs go back to their lanes, or, with a failed_at, stay where no claim finds them.
-- relies on: primary key
UPDATE ([
    SELECT
        :id AS id, :run_at AS run_at, :due AS due, :failed_at AS failed_at,
        :attempts AS attempts, :interruptions AS interruptions, :error AS error
| UNION ALL ]) told
STRAIGHT_JOIN {jobs} j FORCE INDEX (PRIMARY) ON j.id = told.id
SET
    j.run_at = COALESCE(told.run_at, j.run_at), j.due = told.due, j.failed_at = told.failed_at,
    j.held_until = 9223372036854775807, j.token = 0,
    j.attempts = told.attempts, j.interruptions = told.interruptions, j.error = told.error;

-- name: give_back.job
-- Jobs wait again as they were, with these unique keys.
-- relies on: primary key
UPDATE ([SELECT :id AS id, :unique_key AS unique_key| UNION ALL ]) given
STRAIGHT_JOIN {jobs} j FORCE INDEX (PRIMARY) ON j.id = given.id
SET
    j.due = j.run_at, j.held_until = 9223372036854775807, j.token = 0, j.attempts = j.attempts - 1,
    j.unique_key = given.unique_key;

-- name: renew.claims
-- Jobs whose hold is not over, locked, each with the token of its claim.
-- relies on: primary key
SELECT id, token FROM {jobs} FORCE INDEX (PRIMARY)
WHERE id IN (:ids) AND held_until > :now AND held_until < 9223372036854775807 ORDER BY id FOR UPDATE;

-- name: renew.job
-- They are held for longer.
-- relies on: primary key
UPDATE {jobs} FORCE INDEX (PRIMARY) SET held_until = :until WHERE id IN (:ids);

-- name: schedules.record
-- A run's moment, when it is later than the one recorded; else no row is touched.
-- relies on: primary key
INSERT INTO {schedules} (name, run_at) VALUES (:name, :run_at)
ON DUPLICATE KEY UPDATE run_at = GREATEST(run_at, :run_at);

-- name: schedules.one
-- The moment recorded for a schedule.
-- relies on: primary key
SELECT run_at FROM {schedules} WHERE name = :name;

-- name: schedules.recorded
-- The moment recorded for each schedule.
-- relies on: nothing
SELECT name, run_at FROM {schedules};

-- name: schedules.tell
-- An instance with this zone data is at work.
-- relies on: primary key
INSERT INTO {meta} (name, value) VALUES (CONCAT('zone data ', :name), :now)
ON DUPLICATE KEY UPDATE value = :now;

-- name: schedules.told
-- When instances with each zone data were last said to be at work.
-- relies on: nothing
SELECT substr(name, 11), value FROM {meta} WHERE name LIKE 'zone data %';

-- name: hold_back.kind
-- No claim takes the kind until then; the moment only moves forward.
-- relies on: primary key
INSERT INTO {held_kinds} (kind, held_until) VALUES (:kind, :until)
ON DUPLICATE KEY UPDATE held_until = GREATEST(held_until, :until);

-- name: failed.page
-- Some of the failed jobs, the latest failure first, behind a place in that order.
-- relies on: jobs_failed
SELECT
    id, kind, queue, payload, run_at, attempts, held_until, failed_at, error, options,
    unique_key, alone_key, mode, carried, schedule
FROM {jobs} FORCE INDEX (`{bare:jobs_failed}`)
WHERE failed_at >= :since AND failed_at < :before AND failed_at <= :after_at
    AND (failed_at < :after_at OR id < :after_id)
    AND (:kind IS NULL OR kind = :kind) AND (:queue IS NULL OR queue = :queue)
    AND (:error IS NULL OR LOCATE(:error, error) > 0)
ORDER BY failed_at DESC, id DESC LIMIT :limit;

-- name: failed.these
-- Those of some jobs that have failed and are not on their way to another store, locked.
-- relies on: primary key
SELECT id FROM {jobs} FORCE INDEX (PRIMARY)
WHERE id IN (:ids) AND failed_at IS NOT NULL AND token = 0 ORDER BY id FOR UPDATE;

-- name: failed.run_again
-- They go back to their lanes, with no attempts.
-- relies on: primary key
UPDATE {jobs} FORCE INDEX (PRIMARY)
SET failed_at = NULL, run_at = :at, due = :at, attempts = 0, interruptions = 0
WHERE id IN (:ids);

-- name: failed.forget
-- They are deleted.
-- relies on: primary key
DELETE j FROM JSON_TABLE(:gone, '$[*]' COLUMNS (id BIGINT PATH '$')) gone
STRAIGHT_JOIN {jobs} j FORCE INDEX (PRIMARY) ON j.id = gone.id;

-- name: jobs.page
-- The jobs after an id, in one state or any.
-- relies on: primary key
SELECT
    id, kind, queue, payload, run_at, attempts, held_until, failed_at, error, options,
    unique_key, alone_key, mode, carried, schedule
FROM {jobs} FORCE INDEX (PRIMARY)
WHERE id > :after AND (:kind IS NULL OR kind = :kind) AND (:queue IS NULL OR queue = :queue) AND (
    :state IS NULL OR :state = CASE
        WHEN failed_at IS NOT NULL THEN 'failed'
        WHEN held_until > :now AND held_until < 9223372036854775807 THEN 'running'
        WHEN run_at > :now THEN 'delayed'
        ELSE 'waiting'
    END
)
ORDER BY id LIMIT :limit;

-- name: moves.begin
-- A line about moves is there, and locked.
-- relies on: primary key
INSERT INTO {meta} (name, value) VALUES (:name, '') ON DUPLICATE KEY UPDATE value = value;

-- name: moves.noted
-- What a line says.
-- relies on: primary key
SELECT value FROM {meta} WHERE name = :name;

-- name: moves.note
-- A line says something else.
-- relies on: primary key
UPDATE {meta} SET value = :value WHERE name = :name;

-- name: moves.first
-- The first jobs that no claim holds; what is on its way is held until 9223372036854775806.
-- relies on: primary key
SELECT id FROM {jobs} FORCE INDEX (PRIMARY)
WHERE id > 0 AND (held_until <= :now OR held_until = 9223372036854775807) ORDER BY id LIMIT :limit;

-- name: moves.take
-- Those that no claim holds among some jobs are on their way, by the number of their portion. A failed one is where no
-- claim finds it already.
-- relies on: primary key
UPDATE {jobs} FORCE INDEX (PRIMARY) SET
    token = :token, due = 9223372036854775807,
    held_until = CASE WHEN failed_at IS NULL THEN 9223372036854775806 ELSE held_until END
WHERE id BETWEEN :first AND :last AND (held_until <= :now OR held_until = 9223372036854775807);

-- name: moves.leaving
-- The jobs of a portion, whole.
-- relies on: primary key
SELECT
    id, queue, kind, mode, part, run_at, hold_ms, attempts, interruptions,
    payload, options, unique_key, alone_key, carried, schedule, error, failed_at, created_at
FROM {jobs} FORCE INDEX (PRIMARY) WHERE id BETWEEN :first AND :last AND token = :token ORDER BY id;

-- name: moves.left
-- The jobs of a portion are deleted.
-- relies on: primary key
DELETE FROM {jobs} WHERE id BETWEEN :first AND :last AND token = :token;

-- name: moves.taken
-- The ids between two that jobs have.
-- relies on: primary key
SELECT id FROM {jobs} FORCE INDEX (PRIMARY) WHERE id BETWEEN :first AND :last;

-- name: moves.arrive
-- Jobs are kept as they left another store.
-- relies on: nothing
INSERT INTO {jobs} (
    id, queue, kind, mode, part, run_at, due, hold_ms, attempts, interruptions, payload, options, unique_key,
    alone_key, carried, schedule, error, failed_at, created_at
) VALUES [(
    :id, :queue, :kind, :mode, :part, :run_at, :due, :hold_ms, :attempts, :interruptions, :payload, :options,
    :unique_key, :alone_key, :carried, :schedule, :error, :failed_at, :created_at
)|, ];

-- name: counts.all
-- How many jobs of each queue and kind are in each state.
-- relies on: nothing
SELECT
    queue, kind,
    COUNT(IF(state = 'waiting', 1, NULL)), COUNT(IF(state = 'delayed', 1, NULL)),
    COUNT(IF(state = 'running', 1, NULL)), COUNT(IF(state = 'failed', 1, NULL)),
    MIN(IF(state = 'waiting', run_at, NULL))
FROM (
    SELECT queue, kind, run_at, CASE
        WHEN failed_at IS NOT NULL THEN 'failed'
        WHEN held_until > :now AND held_until < 9223372036854775807 THEN 'running'
        WHEN run_at > :now THEN 'delayed'
        ELSE 'waiting'
    END AS state
    FROM {jobs}
) job
GROUP BY queue, kind;

-- name: throttles.hit
-- One try more in the running window, or the first of a new one.
-- relies on: primary key
INSERT INTO {throttles} (name, tries, ends_at) VALUES (:name, 1, :now + :window_ms)
ON DUPLICATE KEY UPDATE
    tries = IF(ends_at > :now, tries + 1, 1),
    ends_at = IF(ends_at > :now, ends_at, :now + :window_ms);

-- name: throttles.tries
-- The running window.
-- relies on: primary key
SELECT tries, ends_at FROM {throttles} WHERE name = :name AND ends_at > :now;

-- name: throttles.clear
-- A window is forgotten.
-- relies on: primary key
DELETE FROM {throttles} WHERE name = :name;

-- name: prune.old
-- Some of the jobs that failed before a moment, locked.
-- relies on: jobs_failed
SELECT id FROM {jobs} FORCE INDEX (`{bare:jobs_failed}`)
WHERE failed_at < :before ORDER BY failed_at LIMIT :portion FOR UPDATE SKIP LOCKED;

-- name: prune.failed
-- They are deleted.
-- relies on: primary key
DELETE j FROM JSON_TABLE(:gone, '$[*]' COLUMNS (id BIGINT PATH '$')) gone
STRAIGHT_JOIN {jobs} j FORCE INDEX (PRIMARY) ON j.id = gone.id;

-- name: prune.over
-- Kinds that are held back no longer, locked.
-- relies on: nothing
SELECT kind FROM {held_kinds} WHERE held_until <= :now AND held_until > 0 FOR UPDATE SKIP LOCKED;

-- name: prune.kinds
-- That they were is forgotten; the rows stay, since claims lock them.
-- relies on: primary key
UPDATE {held_kinds} FORCE INDEX (PRIMARY) SET held_until = 0 WHERE kind IN (:kinds);

-- name: prune.windows
-- Some of the throttles whose windows are over, locked.
-- relies on: nothing
SELECT name FROM {throttles} WHERE ends_at <= :now LIMIT :portion FOR UPDATE SKIP LOCKED;

-- name: prune.throttles
-- They are forgotten.
-- relies on: primary key
DELETE t FROM {throttles} t FORCE INDEX (PRIMARY) WHERE t.name IN (:names);
