-- NEVER is 9223372036854775807: the `due` of a job that does not wait, the `held_until` of one that is not held.
--
-- MySQL commits after each statement here, so each may find its work done by a run that was broken off.
-- Text is compared byte for byte, spaces at its end too: the collation for that has a name of its own on each server.

CREATE TABLE IF NOT EXISTS {migrations} (
    number INT NOT NULL PRIMARY KEY,
    name VARCHAR(255) NOT NULL,
    applied_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;

CREATE TABLE IF NOT EXISTS {meta} (
    name VARCHAR(255) NOT NULL PRIMARY KEY,
    value VARCHAR(255) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;

INSERT INTO {meta} (name, value) VALUES ('identity', MD5(CONCAT(UUID(), RAND(), CONNECTION_ID())))
ON DUPLICATE KEY UPDATE name = name;

CREATE TABLE IF NOT EXISTS {jobs} (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    queue VARCHAR(255) NOT NULL,
    kind VARCHAR(255) NOT NULL,
    mode INT NOT NULL,
    part VARCHAR(191) NOT NULL DEFAULT '',
    run_at BIGINT NOT NULL,
    due BIGINT NOT NULL,
    held_until BIGINT NOT NULL DEFAULT 9223372036854775807,
    hold_ms BIGINT NOT NULL,
    token BIGINT NOT NULL DEFAULT 0,
    attempts INT NOT NULL DEFAULT 0,
    interruptions INT NOT NULL DEFAULT 0,
    payload LONGTEXT NOT NULL,
    options LONGTEXT,
    unique_key VARCHAR(255),
    alone_key VARCHAR(255),
    carried LONGTEXT,
    schedule VARCHAR(255),
    error LONGTEXT,
    failed_at BIGINT,
    created_at BIGINT NOT NULL,
    -- A row's id is the last part of every index by itself.
    KEY `{bare:jobs_lane}` (queue, kind, mode, part, due),
    KEY `{bare:jobs_held}` (kind, held_until, alone_key),
    -- Not unique: with a unique index, pushes that wait for one that is then rolled back deadlock.
    KEY `{bare:jobs_waits}` (kind, unique_key),
    KEY `{bare:jobs_failed}` (failed_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;

-- The lanes that a job was ever pushed into: finding them in the index of jobs would read all of it.
CREATE TABLE IF NOT EXISTS {lanes} (
    queue VARCHAR(255) NOT NULL,
    kind VARCHAR(255) NOT NULL,
    mode INT NOT NULL,
    part VARCHAR(191) NOT NULL DEFAULT '',
    PRIMARY KEY (queue, kind, mode, part)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;

-- A row for each kind, also those that are not held back: who claims limited jobs of the kind locks it.
CREATE TABLE IF NOT EXISTS {held_kinds} (
    kind VARCHAR(255) NOT NULL PRIMARY KEY,
    held_until BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;

-- Who pushes a job with a unique key locks one of these rows: they are always there, so no lock is on a gap.
CREATE TABLE IF NOT EXISTS {slots} (
    slot INT NOT NULL PRIMARY KEY
) ENGINE=InnoDB;

INSERT INTO {slots} (slot)
SELECT a.n * 256 + b.n * 16 + c.n
FROM
    (
        SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3
        UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7
        UNION ALL SELECT 8 UNION ALL SELECT 9 UNION ALL SELECT 10 UNION ALL SELECT 11
        UNION ALL SELECT 12 UNION ALL SELECT 13 UNION ALL SELECT 14 UNION ALL SELECT 15
    ) a, (
        SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3
        UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7
        UNION ALL SELECT 8 UNION ALL SELECT 9 UNION ALL SELECT 10 UNION ALL SELECT 11
        UNION ALL SELECT 12 UNION ALL SELECT 13 UNION ALL SELECT 14 UNION ALL SELECT 15
    ) b, (
        SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3
        UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7
        UNION ALL SELECT 8 UNION ALL SELECT 9 UNION ALL SELECT 10 UNION ALL SELECT 11
        UNION ALL SELECT 12 UNION ALL SELECT 13 UNION ALL SELECT 14 UNION ALL SELECT 15
    ) c
ON DUPLICATE KEY UPDATE {slots}.slot = {slots}.slot;

CREATE TABLE IF NOT EXISTS {schedules} (
    name VARCHAR(255) NOT NULL PRIMARY KEY,
    run_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;

CREATE TABLE IF NOT EXISTS {throttles} (
    name VARCHAR(255) NOT NULL PRIMARY KEY,
    tries BIGINT NOT NULL,
    ends_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 /*!80017 COLLATE=utf8mb4_0900_bin */ /*M! COLLATE=utf8mb4_nopad_bin */;
