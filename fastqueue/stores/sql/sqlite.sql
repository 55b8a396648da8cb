-- The statements of the SQLite store.
--
-- 9223372036854775807 is NEVER: the `due` of a job that does not wait, the `held_until` of one that is not held. It
-- stands in the text, and not as a place, since an index with that condition is used only where the text has it too.

-- name: meta.tables
-- How many of the tables that record migrations are there: 0 or 1.
-- relies on: nothing
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = :name;

-- name: meta.current
-- The number of the last migration applied.
-- relies on: primary key
SELECT coalesce(max(number), 0) FROM {migrations};

-- name: meta.record
-- A migration was applied.
-- relies on: nothing
INSERT INTO {migrations} (number, name, applied_at) VALUES (:number, :name, :applied_at);

-- name: meta.identity
-- The text that no other set of tables has.
-- relies on: primary key
SELECT value FROM {meta} WHERE name = 'identity';

-- name: lanes.queues
-- The queues that have waiting jobs: from each on to the next, a seek a queue.
-- relies on: jobs_lane
WITH RECURSIVE at(queue) AS (
    SELECT (SELECT queue FROM {jobs} WHERE due < 9223372036854775807 ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT j.queue FROM {jobs} j
        WHERE j.queue > at.queue AND j.due < 9223372036854775807
        ORDER BY j.queue LIMIT 1
    )
    FROM at WHERE at.queue IS NOT NULL
)
SELECT queue FROM at WHERE queue IS NOT NULL;

-- name: lanes.heads
-- The lanes of some queues, when the first job of each is due, and until when its kind is held back: from each lane
-- on to the next part, else the next mode, else the next kind; a few seeks a lane.
-- relies on: jobs_lane
WITH RECURSIVE head(id) AS (
    SELECT (
        SELECT j.id FROM {jobs} j
        WHERE j.queue = wanted.value AND j.due < 9223372036854775807
        ORDER BY j.kind, j.mode, j.part, j.due LIMIT 1
    )
    FROM json_each(:queues) wanted
    UNION ALL
    SELECT coalesce(
        (
            SELECT j.id FROM {jobs} j
            WHERE j.queue = at.queue AND j.kind = at.kind AND j.mode = at.mode AND j.part > at.part
                AND j.due < 9223372036854775807
            ORDER BY j.part, j.due LIMIT 1
        ), (
            SELECT j.id FROM {jobs} j
            WHERE j.queue = at.queue AND j.kind = at.kind AND j.mode > at.mode AND j.due < 9223372036854775807
            ORDER BY j.mode, j.part, j.due LIMIT 1
        ), (
            SELECT j.id FROM {jobs} j
            WHERE j.queue = at.queue AND j.kind > at.kind AND j.due < 9223372036854775807
            ORDER BY j.kind, j.mode, j.part, j.due LIMIT 1
        )
    )
    FROM head CROSS JOIN {jobs} at ON at.id = head.id
)
SELECT at.queue, at.kind, at.mode, at.part, at.due, coalesce(back.held_until, 0)
FROM head CROSS JOIN {jobs} at ON at.id = head.id LEFT JOIN {held_kinds} back ON back.kind = at.kind;

-- name: push.insert
-- New jobs without a unique key; the values are repeated for each.
-- relies on: nothing
INSERT INTO {jobs} (
    queue, kind, mode, part, run_at, due, hold_ms,
    payload, options, unique_key, alone_key, carried, schedule, created_at
) VALUES (
    :queue, :kind, :mode, :part, :run_at, :due, :hold_ms,
    :payload, :options, :unique_key, :alone_key, :carried, :schedule, :created_at
);

-- name: push.insert_unique
-- A new job, unless one of its kind waits with its key: then nothing.
-- relies on: jobs_unique
INSERT INTO {jobs} (
    queue, kind, mode, part, run_at, due, hold_ms,
    payload, options, unique_key, alone_key, carried, schedule, created_at
) VALUES (
    :queue, :kind, :mode, :part, :run_at, :due, :hold_ms,
    :payload, :options, :unique_key, :alone_key, :carried, :schedule, :created_at
) ON CONFLICT (kind, unique_key) WHERE unique_key IS NOT NULL DO NOTHING;

-- name: push.waiting
-- The job that waits with a key.
-- relies on: jobs_unique
SELECT id FROM {jobs} WHERE kind = :kind AND unique_key = :unique_key;

-- name: push.move
-- The waiting job takes another time; one that is on its way to another store is not claimed here for that.
-- relies on: primary key
UPDATE {jobs} SET run_at = :run_at, due = CASE WHEN held_until < 9223372036854775807 THEN due ELSE :run_at END
WHERE id = :id;

-- name: claim.lost
-- Whether a hold of one of these kinds is over and its job not yet back in its lane.
-- relies on: jobs_held
SELECT EXISTS (
    SELECT 1 FROM json_each(:kinds) ours CROSS JOIN {jobs} j
    WHERE j.kind = ours.value AND j.held_until <= :now AND j.held_until < 9223372036854775807
);

-- name: claim.free
-- Jobs whose hold is over go back to their lanes; the token stays, so that their worker may still settle.
-- relies on: jobs_held
UPDATE {jobs} SET due = run_at, held_until = 9223372036854775807
WHERE kind IN (SELECT value FROM json_each(:kinds)) AND held_until <= :now AND held_until < 9223372036854775807;

-- name: claim.held
-- The held jobs of some kinds, a row each: what limits count.
-- relies on: jobs_held
SELECT j.kind, j.alone_key FROM json_each(:kinds) ours CROSS JOIN {jobs} j
WHERE j.kind = ours.value AND j.held_until > :now AND j.held_until < 9223372036854775807;

-- name: claim.line
-- A lane's jobs in their order, as this claim would hand them out; read no further than it needs.
-- relies on: jobs_lane
SELECT
    due, id, kind, queue, payload, run_at, :now + hold_ms, hold_ms, attempts + 1, interruptions, options,
    unique_key, alone_key, mode, carried, schedule, error, token <> 0
FROM {jobs}
WHERE queue = :queue AND kind = :kind AND mode = :mode AND part = :part AND due < 9223372036854775807
ORDER BY due, id;

-- name: claim.take
-- The jobs leave their lanes, held by this claim.
-- relies on: primary key
UPDATE {jobs} SET
    due = 9223372036854775807, held_until = :now + hold_ms, token = :token, attempts = attempts + 1, unique_key = NULL
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: settle.gone
-- Jobs of one claim are done.
-- relies on: primary key
DELETE FROM {jobs} WHERE id IN (SELECT value FROM json_each(:ids)) AND token = :token AND failed_at IS NULL
RETURNING id;

-- name: settle.waits
-- The job goes back to its lane.
-- relies on: primary key
UPDATE {jobs} SET
    run_at = :at, due = :at, held_until = 9223372036854775807, token = 0,
    attempts = :attempts, interruptions = :interruptions, error = :error
WHERE id = :id AND token = :token AND failed_at IS NULL;

-- name: settle.failed
-- The job stays where no claim finds it.
-- relies on: primary key
UPDATE {jobs} SET
    failed_at = :at, due = 9223372036854775807, held_until = 9223372036854775807, token = 0,
    attempts = :attempts, interruptions = :interruptions, error = :error
WHERE id = :id AND token = :token AND failed_at IS NULL;

-- name: give_back.job
-- The job waits again as it was, with its unique key unless another waits with it by now.
-- relies on: primary key
UPDATE {jobs} SET
    due = run_at, held_until = 9223372036854775807, token = 0, attempts = attempts - 1,
    unique_key = (
        SELECT :unique_key WHERE NOT EXISTS (
            SELECT 1 FROM {jobs} other WHERE other.kind = :kind AND other.unique_key = :unique_key
        )
    )
WHERE id = :id AND token = :token AND failed_at IS NULL;

-- name: renew.job
-- The job is held for longer, unless its hold is over.
-- relies on: primary key
UPDATE {jobs} SET held_until = :until
WHERE id = :id AND token = :token AND held_until > :now AND held_until < 9223372036854775807;

-- name: schedules.record
-- A run's moment, when it is later than the one recorded.
-- relies on: primary key
INSERT INTO {schedules} (name, run_at) VALUES (:name, :run_at)
ON CONFLICT (name) DO UPDATE SET run_at = excluded.run_at WHERE excluded.run_at > run_at;

-- name: schedules.one
-- The moment recorded for a schedule.
-- relies on: primary key
SELECT run_at FROM {schedules} WHERE name = :name;

-- name: schedules.recorded
-- The moment recorded for each schedule.
-- relies on: nothing
SELECT name, run_at FROM {schedules} ORDER BY name;

-- name: schedules.tell
-- An instance with this zone data is at work.
-- relies on: primary key
INSERT INTO {meta} (name, value) VALUES ('zone data ' || :name, :now)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: schedules.told
-- When instances with each zone data were last said to be at work.
-- relies on: nothing
SELECT substr(name, 11), value FROM {meta} WHERE name LIKE 'zone data %';

-- name: hold_back.kind
-- No claim takes the kind until then; the moment only moves forward.
-- relies on: primary key
INSERT INTO {held_kinds} (kind, held_until) VALUES (:kind, :until)
ON CONFLICT (kind) DO UPDATE SET held_until = max(held_until, excluded.held_until);

-- name: failed.page
-- Some of the failed jobs, the latest failure first, behind a place in that order.
-- relies on: jobs_failed
SELECT
    id, kind, queue, payload, run_at, attempts, held_until, failed_at, error, options,
    unique_key, alone_key, mode, carried, schedule
FROM {jobs}
WHERE failed_at >= :since AND failed_at < :before AND failed_at <= :after_at
    AND (failed_at < :after_at OR id < :after_id)
    AND (:kind IS NULL OR kind = :kind) AND (:queue IS NULL OR queue = :queue)
    AND (:error IS NULL OR instr(error, :error) > 0)
ORDER BY failed_at DESC, id DESC LIMIT :limit;

-- name: failed.run_again
-- A failed job goes back to its lane, with no attempts.
-- relies on: primary key
UPDATE {jobs} SET failed_at = NULL, run_at = :at, due = :at, attempts = 0, interruptions = 0
WHERE id = :id AND failed_at IS NOT NULL AND token = 0;

-- name: failed.forget
-- A failed job is deleted.
-- relies on: primary key
DELETE FROM {jobs} WHERE id = :id AND failed_at IS NOT NULL AND token = 0;

-- name: jobs.page
-- The jobs after an id, in one state or any.
-- relies on: primary key
SELECT
    id, kind, queue, payload, run_at, attempts, held_until, failed_at, error, options,
    unique_key, alone_key, mode, carried, schedule
FROM {jobs}
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
INSERT INTO {meta} (name, value) VALUES (:name, '') ON CONFLICT (name) DO NOTHING;

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
SELECT id FROM {jobs}
WHERE id > 0 AND (held_until <= :now OR held_until = 9223372036854775807) ORDER BY id LIMIT :limit;

-- name: moves.take
-- Those that no claim holds among some jobs are on their way, by the number of their portion. A failed one is where no
-- claim finds it already.
-- relies on: primary key
UPDATE {jobs} SET
    token = :token, due = 9223372036854775807,
    held_until = CASE WHEN failed_at IS NULL THEN 9223372036854775806 ELSE held_until END
WHERE id BETWEEN :first AND :last AND (held_until <= :now OR held_until = 9223372036854775807);

-- name: moves.leaving
-- The jobs of a portion, whole.
-- relies on: primary key
SELECT
    id, queue, kind, mode, part, run_at, hold_ms, attempts, interruptions,
    payload, options, unique_key, alone_key, carried, schedule, error, failed_at, created_at
FROM {jobs} WHERE id BETWEEN :first AND :last AND token = :token ORDER BY id;

-- name: moves.left
-- The jobs of a portion are deleted.
-- relies on: primary key
DELETE FROM {jobs} WHERE id BETWEEN :first AND :last AND token = :token;

-- name: moves.taken
-- The ids between two that jobs have.
-- relies on: primary key
SELECT id FROM {jobs} WHERE id BETWEEN :first AND :last;

-- name: moves.arrive
-- Jobs are kept as they left another store.
-- relies on: nothing
INSERT INTO {jobs} (
    id, queue, kind, mode, part, run_at, due, hold_ms, attempts, interruptions, payload, options, unique_key,
    alone_key, carried, schedule, error, failed_at, created_at
) VALUES (
    :id, :queue, :kind, :mode, :part, :run_at, :due, :hold_ms, :attempts, :interruptions, :payload, :options,
    :unique_key, :alone_key, :carried, :schedule, :error, :failed_at, :created_at
);

-- name: counts.all
-- How many jobs of each queue and kind are in each state.
-- relies on: nothing
SELECT
    queue, kind,
    sum(state = 'waiting'), sum(state = 'delayed'), sum(state = 'running'), sum(state = 'failed'),
    min(CASE WHEN state = 'waiting' THEN run_at END)
FROM (
    SELECT queue, kind, run_at, CASE
        WHEN failed_at IS NOT NULL THEN 'failed'
        WHEN held_until > :now AND held_until < 9223372036854775807 THEN 'running'
        WHEN run_at > :now THEN 'delayed'
        ELSE 'waiting'
    END AS state
    FROM {jobs}
)
GROUP BY queue, kind ORDER BY queue, kind;

-- name: throttles.hit
-- One try more in the running window, or the first of a new one.
-- relies on: primary key
INSERT INTO {throttles} (name, tries, ends_at) VALUES (:name, 1, :now + :window_ms)
ON CONFLICT (name) DO UPDATE SET
    tries = CASE WHEN ends_at > :now THEN tries + 1 ELSE 1 END,
    ends_at = CASE WHEN ends_at > :now THEN ends_at ELSE excluded.ends_at END
RETURNING tries, ends_at;

-- name: throttles.tries
-- The running window.
-- relies on: primary key
SELECT tries, ends_at FROM {throttles} WHERE name = :name AND ends_at > :now;

-- name: throttles.clear
-- A window is forgotten.
-- relies on: primary key
DELETE FROM {throttles} WHERE name = :name;

-- name: prune.failed
-- Some of the jobs that failed before a moment are deleted.
-- relies on: jobs_failed
DELETE FROM {jobs} WHERE id IN (
    SELECT id FROM {jobs} WHERE failed_at IS NOT NULL AND failed_at < :before ORDER BY failed_at LIMIT :portion
);

-- name: prune.kinds
-- Kinds that are held back no longer are forgotten.
-- relies on: nothing
DELETE FROM {held_kinds} WHERE held_until <= :now;

-- name: prune.throttles
-- Some of the windows that are over are forgotten.
-- relies on: nothing
DELETE FROM {throttles} WHERE name IN (SELECT name FROM {throttles} WHERE ends_at <= :now LIMIT :portion);
