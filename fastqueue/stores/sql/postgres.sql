-- The statements of the PostgreSQL store. What a claim does inside is in the functions that the migrations make.
--
-- 9223372036854775807 is NEVER: the `due` of a job that does not wait, the `held_until` of one that is not held. It
-- stands in the text, and not as a place, since an index with that condition is used only where the text has it too.
--
-- Jobs are found by `id = ANY (...)`, and not by a join alone: a plan that was made while the table was empty may walk
-- all of it for that.

-- name: meta.tables
-- Whether the table that records migrations is there. Reading pg_class makes the session hear of tables that others have
-- made since its transaction began.
-- relies on: nothing
SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass(:name::text));

-- name: meta.schema
-- Whether a schema is there.
-- relies on: nothing
SELECT :schema::text IS NULL OR to_regnamespace(:schema::text) IS NOT NULL;

-- name: meta.lock
-- One instance at a time migrates, until the end of its transaction.
-- relies on: nothing
SELECT pg_advisory_xact_lock(hashtextextended(:name::text, 0));

-- name: meta.current
-- The number of the last migration applied.
-- relies on: nothing
SELECT coalesce(max(number), 0) FROM {migrations};

-- name: meta.record
-- A migration was applied.
-- relies on: nothing
INSERT INTO {migrations} (number, name, applied_at) VALUES (:number::int, :name::text, :applied_at::bigint);

-- name: meta.identity
-- The text that no other set of tables has.
-- relies on: meta_pkey
SELECT value FROM {meta} WHERE name = 'identity';

-- name: meta.now
-- The server's clock, not the moment at which a transaction began.
-- relies on: nothing
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- name: lanes.heads
-- The lanes and when the first job of each is due: from each lane on to the next, one seek a lane.
-- relies on: jobs_lane
WITH RECURSIVE lane(queue, kind, mode, due) AS (
    (
        SELECT j.queue, j.kind, j.mode, j.due FROM {jobs} j
        WHERE j.due < 9223372036854775807 ORDER BY j.queue, j.kind, j.mode, j.part, j.due LIMIT 1
    )
    UNION ALL
    SELECT n.queue, n.kind, n.mode, n.due FROM lane l CROSS JOIN LATERAL (
        SELECT j.queue, j.kind, j.mode, j.due FROM {jobs} j
        WHERE (j.queue, j.kind, j.mode) > (l.queue, l.kind, l.mode) AND j.due < 9223372036854775807
        ORDER BY j.queue, j.kind, j.mode, j.part, j.due LIMIT 1
    ) n
)
SELECT queue, kind, mode, due FROM lane;

-- name: push.one
-- One new job without a unique key, and the notice of it in the same commit, if a channel is given.
-- relies on: nothing
INSERT INTO {jobs} (
    queue, kind, mode, run_at, due, hold_ms, payload, options, alone_key, carried, schedule, created_at
) VALUES (
    :queue::text, :kind::text, :mode::int, :run_at::bigint, :run_at::bigint, :hold_ms::bigint, :payload::text,
    :options::text, :alone_key::text, :carried::text, :schedule::text, :created_at::bigint
) RETURNING id, CASE WHEN :channel::text IS NOT NULL THEN pg_notify(:channel::text, :tag::text) END;

-- name: push.insert
-- New jobs without unique keys. The ids are made first, one for each place, since no order of insertion is promised.
-- What is the same for all jobs comes once, as an array of one: unnest fills it up with nulls, and the first stands for those.
-- relies on: nothing
WITH made AS MATERIALIZED (
    SELECT array_agg(nextval('{jobs_id_seq}'::regclass)) AS ids FROM generate_series(1, :jobs::int)
), new AS (
    INSERT INTO {jobs} (
        id, queue, kind, mode, run_at, due, hold_ms, payload, options, alone_key, carried, schedule, created_at
    )
    SELECT
        i.id, coalesce(i.queue, (:queue::text[])[1]), coalesce(i.kind, (:kind::text[])[1]),
        coalesce(i.mode, (:mode::int[])[1]), coalesce(i.run_at, (:run_at::bigint[])[1]),
        coalesce(i.run_at, (:run_at::bigint[])[1]), coalesce(i.hold_ms, (:hold_ms::bigint[])[1]),
        i.payload, i.options, i.alone_key, i.carried, i.schedule, :created_at::bigint
    FROM made CROSS JOIN LATERAL unnest(
        made.ids, :queue::text[], :kind::text[], :mode::int[], :run_at::bigint[], :hold_ms::bigint[],
        :payload::text[], :options::text[], :alone_key::text[], :carried::text[], :schedule::text[]
    ) i(id, queue, kind, mode, run_at, hold_ms, payload, options, alone_key, carried, schedule)
)
SELECT ids, CASE WHEN :channel::text IS NOT NULL THEN pg_notify(:channel::text, :tag::text) END FROM made;

-- name: push.keyed
-- New jobs, those with unique keys only where no other of the kind waits with the key; one that waits takes the time
-- of a push that moves it. In the order of the keys, so that no two pushes wait for each other. Answers the ids made,
-- one for each place, and which ids have the keys: a job is new when that is the one made for it.
-- relies on: jobs_unique
WITH made AS MATERIALIZED (
    SELECT array_agg(nextval('{jobs_id_seq}'::regclass)) AS ids FROM generate_series(1, :jobs::int)
), i AS MATERIALIZED (
    SELECT
        u.id, coalesce(u.queue, (:queue::text[])[1]) AS queue, coalesce(u.kind, (:kind::text[])[1]) AS kind,
        coalesce(u.mode, (:mode::int[])[1]) AS mode, coalesce(u.run_at, (:run_at::bigint[])[1]) AS run_at,
        coalesce(u.hold_ms, (:hold_ms::bigint[])[1]) AS hold_ms,
        u.payload, u.options, u.alone_key, u.carried, u.schedule, u.unique_key, u.latest
    FROM made CROSS JOIN LATERAL unnest(
        made.ids, :queue::text[], :kind::text[], :mode::int[], :run_at::bigint[], :hold_ms::bigint[],
        :payload::text[], :options::text[], :alone_key::text[], :carried::text[], :schedule::text[],
        :unique_key::text[], :latest::boolean[]
    ) u(
        id, queue, kind, mode, run_at, hold_ms, payload, options, alone_key, carried, schedule, unique_key, latest
    )
), kept AS (
    INSERT INTO {jobs} AS j (
        id, queue, kind, mode, run_at, due, hold_ms, payload, options, alone_key, carried, schedule,
        unique_key, created_at
    )
    SELECT
        i.id, i.queue, i.kind, i.mode, i.run_at, i.run_at, i.hold_ms, i.payload, i.options, i.alone_key, i.carried,
        i.schedule, i.unique_key, :created_at::bigint
    FROM i ORDER BY i.kind, i.unique_key
    ON CONFLICT (kind, unique_key) WHERE unique_key IS NOT NULL DO UPDATE SET
        run_at = CASE
            WHEN (excluded.kind, excluded.unique_key) IN (SELECT m.kind, m.unique_key FROM i m WHERE m.latest)
            THEN excluded.run_at ELSE j.run_at
        END,
        due = CASE
            WHEN j.held_until < 9223372036854775807 THEN j.due
            WHEN (excluded.kind, excluded.unique_key) IN (SELECT m.kind, m.unique_key FROM i m WHERE m.latest)
            THEN excluded.run_at ELSE j.run_at
        END
    RETURNING j.id, j.kind, j.unique_key
)
SELECT
    (SELECT ids FROM made), array_agg(kept.id), array_agg(kept.kind), array_agg(kept.unique_key),
    CASE WHEN :channel::text IS NOT NULL THEN pg_notify(:channel::text, :tag::text) END
FROM kept WHERE kept.unique_key IS NOT NULL;

-- name: push.waiting
-- The job that waits with a key.
-- relies on: jobs_unique
SELECT id FROM {jobs} WHERE kind = :kind::text AND unique_key = :unique_key::text;

-- name: claim.take
-- Holds due jobs for a claim, and tells about the look: see the function.
-- relies on: jobs_lane
SELECT * FROM {claim}(
    :now::bigint, :token::bigint, :limit::int, :queues::text[], :kinds::text[], :lane_places::int[],
    :lane_queues::text[], :lane_kinds::text[], :lane_modes::int[], :lane_marks::bigint[]
);

-- name: settle.ends
-- How runs ended: the jobs that are done, and those that wait again (failed_at is null) or stay where no claim finds
-- them. Answers those whose claims still had them.
-- relies on: jobs_pkey
WITH gone AS (
    DELETE FROM {jobs} j USING unnest(:gone_ids::bigint[], :gone_tokens::bigint[]) g(id, token)
    WHERE j.id = ANY (:gone_ids::bigint[]) AND j.id = g.id AND j.token = g.token AND j.failed_at IS NULL
    RETURNING g.id, g.token
), kept AS (
    UPDATE {jobs} j SET
        run_at = coalesce(s.due, j.run_at), due = coalesce(s.due, 9223372036854775807), failed_at = s.failed_at,
        held_until = 9223372036854775807, token = 0,
        attempts = s.attempts, interruptions = s.interruptions, error = s.error
    FROM unnest(
        :ids::bigint[], :tokens::bigint[], :dues::bigint[], :failed_ats::bigint[],
        :attempts::int[], :interruptions::int[], :errors::text[]
    ) s(id, token, due, failed_at, attempts, interruptions, error)
    WHERE j.id = ANY (:ids::bigint[]) AND j.id = s.id AND j.token = s.token AND j.failed_at IS NULL
    RETURNING s.id, s.token
)
SELECT id, token FROM gone UNION ALL SELECT id, token FROM kept;

-- name: give_back.job
-- Jobs wait again as they were, with their unique keys where no others wait with them: see the function.
-- relies on: jobs_pkey
SELECT {give_back}(:ids::bigint[], :tokens::bigint[], :unique_keys::text[]);

-- name: renew.job
-- Jobs are held for longer, unless their holds are over: `<>`, since a plan may otherwise walk all that run.
-- relies on: jobs_pkey
UPDATE {jobs} j SET held_until = :until::bigint FROM unnest(:ids::bigint[], :tokens::bigint[]) r(id, token)
WHERE j.id = ANY (:ids::bigint[]) AND j.id = r.id AND j.token = r.token
    AND j.held_until > :now::bigint AND j.held_until <> 9223372036854775807
RETURNING r.id, r.token;

-- name: schedules.push_run
-- A run's moment, when it is later than the one recorded, and then its job, unless one waits with its key: then
-- nothing. No answer: the moment was recorded before.
-- relies on: schedules_pkey
WITH recorded AS (
    INSERT INTO {schedules} AS s (name, run_at) VALUES (:name::text, :run_at::bigint)
    ON CONFLICT (name) DO UPDATE SET run_at = excluded.run_at WHERE s.run_at < excluded.run_at
    RETURNING s.run_at
), new AS (
    INSERT INTO {jobs} (
        queue, kind, mode, run_at, due, hold_ms, payload, options, alone_key, carried, schedule, unique_key, created_at
    )
    SELECT
        :queue::text, :kind::text, :mode::int, r.run_at, r.run_at, :hold_ms::bigint, :payload::text, :options::text,
        :alone_key::text, :carried::text, :schedule::text, :unique_key::text, :created_at::bigint
    FROM recorded r
    ON CONFLICT (kind, unique_key) WHERE unique_key IS NOT NULL DO NOTHING
    RETURNING id
)
SELECT
    EXISTS (SELECT FROM new), r.run_at,
    CASE WHEN :channel::text IS NOT NULL THEN pg_notify(:channel::text, :tag::text) END
FROM recorded r;

-- name: schedules.record
-- A run's moment, when it is later than the one recorded.
-- relies on: schedules_pkey
INSERT INTO {schedules} AS s (name, run_at) VALUES (:name::text, :run_at::bigint)
ON CONFLICT (name) DO UPDATE SET run_at = excluded.run_at WHERE s.run_at < excluded.run_at;

-- name: schedules.one
-- The moment recorded for a schedule.
-- relies on: schedules_pkey
SELECT run_at FROM {schedules} WHERE name = :name::text;

-- name: schedules.recorded
-- The moment recorded for each schedule.
-- relies on: nothing
SELECT name, run_at FROM {schedules};

-- name: schedules.tell
-- An instance with this zone data is at work.
-- relies on: meta_pkey
INSERT INTO {meta} (name, value) VALUES ('zone data ' || :name::text, :now::bigint::text)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: schedules.told
-- When instances with each zone data were last said to be at work.
-- relies on: nothing
SELECT substr(name, 11), value FROM {meta} WHERE name LIKE 'zone data %';

-- name: hold_back.kind
-- No claim takes the kind until then, which only moves forward, and the job is given back.
-- relies on: held_kinds_pkey
WITH kind AS (
    INSERT INTO {held_kinds} AS h (kind, held_until) VALUES (:kind::text, :until::bigint)
    ON CONFLICT (kind) DO UPDATE SET held_until = greatest(h.held_until, excluded.held_until)
)
SELECT {give_back}(ARRAY[:id::bigint], ARRAY[:token::bigint], ARRAY[:unique_key::text]);

-- name: failed.page
-- Some of the failed jobs, the latest failure first, behind a place in that order.
-- relies on: jobs_failed
SELECT
    id, kind, queue, payload, run_at, attempts, held_until, failed_at, error, options,
    unique_key, alone_key, mode, carried, schedule
FROM {jobs}
WHERE failed_at >= :since::bigint AND failed_at < :before::bigint
    AND (failed_at, id) < (:after_at::bigint, :after_id::bigint)
    AND (:kind::text IS NULL OR kind = :kind::text) AND (:queue::text IS NULL OR queue = :queue::text)
    AND (:error::text IS NULL OR strpos(error, :error::text) > 0)
ORDER BY failed_at DESC, id DESC LIMIT :limit::bigint;

-- name: failed.run_again
-- Failed jobs go back to their lanes, with no attempts, and the notice of it, if a channel is given. Not `IS NOT NULL`:
-- a plan may otherwise walk all that failed.
-- relies on: jobs_pkey
WITH again AS (
    UPDATE {jobs} SET failed_at = NULL, run_at = :at::bigint, due = :at::bigint, attempts = 0, interruptions = 0
    WHERE id = ANY (:ids::bigint[]) AND coalesce(failed_at, 9223372036854775807) < 9223372036854775807 AND token = 0
    RETURNING id
)
SELECT
    array_agg(again.id),
    CASE WHEN :channel::text IS NOT NULL AND count(*) > 0 THEN pg_notify(:channel::text, :tag::text) END
FROM again;

-- name: failed.forget
-- Failed jobs are deleted.
-- relies on: jobs_pkey
DELETE FROM {jobs}
WHERE id = ANY (:ids::bigint[]) AND coalesce(failed_at, 9223372036854775807) < 9223372036854775807 AND token = 0
RETURNING id;

-- name: jobs.page
-- The jobs after an id, in one state or any.
-- relies on: jobs_pkey
SELECT
    id, kind, queue, payload, run_at, attempts, held_until, failed_at, error, options,
    unique_key, alone_key, mode, carried, schedule
FROM {jobs}
WHERE id > :after::bigint AND (:kind::text IS NULL OR kind = :kind::text)
    AND (:queue::text IS NULL OR queue = :queue::text)
    AND (:state::text IS NULL OR :state::text = CASE
        WHEN failed_at IS NOT NULL THEN 'failed'
        WHEN held_until > :now::bigint AND held_until < 9223372036854775807 THEN 'running'
        WHEN run_at > :now::bigint THEN 'delayed'
        ELSE 'waiting'
    END)
ORDER BY id LIMIT :limit::bigint;

-- name: moves.begin
-- A line about moves is there, and locked.
-- relies on: meta_pkey
INSERT INTO {meta} AS m (name, value) VALUES (:name::text, '') ON CONFLICT (name) DO UPDATE SET value = m.value;

-- name: moves.noted
-- What a line says.
-- relies on: meta_pkey
SELECT value FROM {meta} WHERE name = :name::text;

-- name: moves.note
-- A line says something else.
-- relies on: meta_pkey
UPDATE {meta} SET value = :value::text WHERE name = :name::text;

-- name: moves.first
-- The first jobs that no claim holds; what is on its way is held until 9223372036854775806.
-- relies on: jobs_pkey
SELECT id FROM {jobs}
WHERE id > 0 AND (held_until <= :now::bigint OR held_until = 9223372036854775807) ORDER BY id LIMIT :limit::bigint;

-- name: moves.take
-- Those that no claim holds among some jobs are on their way, by the number of their portion. A failed one is where no
-- claim finds it already.
-- relies on: jobs_pkey
UPDATE {jobs} SET
    token = :token::bigint, due = 9223372036854775807,
    held_until = CASE WHEN failed_at IS NULL THEN 9223372036854775806 ELSE held_until END
WHERE id BETWEEN :first::bigint AND :last::bigint AND (held_until <= :now::bigint OR held_until = 9223372036854775807);

-- name: moves.leaving
-- The jobs of a portion, whole.
-- relies on: jobs_pkey
SELECT
    id, queue, kind, mode, part, run_at, hold_ms, attempts, interruptions,
    payload, options, unique_key, alone_key, carried, schedule, error, failed_at, created_at
FROM {jobs} WHERE id BETWEEN :first::bigint AND :last::bigint AND token = :token::bigint ORDER BY id;

-- name: moves.left
-- The jobs of a portion are deleted.
-- relies on: jobs_pkey
DELETE FROM {jobs} WHERE id BETWEEN :first::bigint AND :last::bigint AND token = :token::bigint;

-- name: moves.taken
-- The ids between two that jobs have.
-- relies on: jobs_pkey
SELECT id FROM {jobs} WHERE id BETWEEN :first::bigint AND :last::bigint;

-- name: moves.alone
-- Nobody pushes, and so nobody is given an id, until the end of the transaction.
-- relies on: nothing
LOCK TABLE {jobs} IN SHARE ROW EXCLUSIVE MODE;

-- name: moves.ids
-- The ids up to one are given.
-- relies on: nothing
SELECT setval('{jobs_id_seq}'::regclass, greatest(last_value, :last::bigint)) FROM {jobs_id_seq};

-- name: moves.arrive
-- Jobs are kept as they left another store.
-- relies on: nothing
INSERT INTO {jobs} (
    id, queue, kind, mode, part, run_at, due, hold_ms, attempts, interruptions, payload, options, unique_key,
    alone_key, carried, schedule, error, failed_at, created_at
)
SELECT
    coalesce(i.id, nextval('{jobs_id_seq}'::regclass)), i.queue, i.kind, i.mode, i.part, i.run_at, i.due,
    i.hold_ms, i.attempts, i.interruptions, i.payload, i.options, i.unique_key, i.alone_key, i.carried,
    i.schedule, i.error, i.failed_at, i.created_at
FROM unnest(
    :id::bigint[], :queue::text[], :kind::text[], :mode::int[], :part::text[], :run_at::bigint[], :due::bigint[],
    :hold_ms::bigint[], :attempts::int[], :interruptions::int[], :payload::text[], :options::text[],
    :unique_key::text[], :alone_key::text[], :carried::text[], :schedule::text[], :error::text[],
    :failed_at::bigint[], :created_at::bigint[]
) i(
    id, queue, kind, mode, part, run_at, due, hold_ms, attempts, interruptions, payload, options, unique_key,
    alone_key, carried, schedule, error, failed_at, created_at
);

-- name: counts.all
-- How many jobs of each queue and kind are in each state.
-- relies on: nothing
SELECT
    queue, kind,
    count(*) FILTER (WHERE state = 'waiting'), count(*) FILTER (WHERE state = 'delayed'),
    count(*) FILTER (WHERE state = 'running'), count(*) FILTER (WHERE state = 'failed'),
    min(run_at) FILTER (WHERE state = 'waiting')
FROM (
    SELECT queue, kind, run_at, CASE
        WHEN failed_at IS NOT NULL THEN 'failed'
        WHEN held_until > :now::bigint AND held_until < 9223372036854775807 THEN 'running'
        WHEN run_at > :now::bigint THEN 'delayed'
        ELSE 'waiting'
    END AS state
    FROM {jobs}
) job
GROUP BY queue, kind;

-- name: throttles.hit
-- One try more in the running window, or the first of a new one.
-- relies on: throttles_pkey
INSERT INTO {throttles} AS t (name, tries, ends_at) VALUES (:name::text, 1, :now::bigint + :window_ms::bigint)
ON CONFLICT (name) DO UPDATE SET
    tries = CASE WHEN t.ends_at > :now::bigint THEN t.tries + 1 ELSE 1 END,
    ends_at = CASE WHEN t.ends_at > :now::bigint THEN t.ends_at ELSE excluded.ends_at END
RETURNING tries, ends_at;

-- name: throttles.tries
-- The running window.
-- relies on: throttles_pkey
SELECT tries, ends_at FROM {throttles} WHERE name = :name::text AND ends_at > :now::bigint;

-- name: throttles.clear
-- A window is forgotten.
-- relies on: throttles_pkey
DELETE FROM {throttles} WHERE name = :name::text;

-- name: prune.failed
-- Some of the jobs that failed before a moment are deleted.
-- relies on: jobs_failed
DELETE FROM {jobs} WHERE id = ANY (ARRAY(
    SELECT id FROM {jobs} WHERE failed_at IS NOT NULL AND failed_at < :before::bigint
    ORDER BY failed_at LIMIT :portion::bigint FOR UPDATE SKIP LOCKED
)) RETURNING id;

-- name: prune.kinds
-- Kinds that are held back no longer are forgotten.
-- relies on: nothing
DELETE FROM {held_kinds} WHERE held_until <= :now::bigint;

-- name: prune.throttles
-- Some of the windows that are over are forgotten.
-- relies on: nothing
DELETE FROM {throttles} WHERE name IN (
    SELECT name FROM {throttles} WHERE ends_at <= :now::bigint LIMIT :portion::bigint FOR UPDATE SKIP LOCKED
) RETURNING name;

-- name: wakes.notice
-- A notice to those who listen.
-- relies on: nothing
SELECT pg_notify(:channel::text, :tag::text);
