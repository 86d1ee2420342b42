-- Schedules: jobs that come again and again. Beside this file: the same for PostgreSQL.

CREATE TABLE schedules (
    name          TEXT PRIMARY KEY,
    -- A line in the zone, or a period and the instant it is counted from.
    cron          TEXT,
    every_ms      INTEGER,
    anchor        INTEGER,
    tz            TEXT NOT NULL,
    job           TEXT NOT NULL,
    misfire       TEXT NOT NULL,
    misfire_cap   INTEGER NOT NULL,
    overlap       TEXT NOT NULL,
    jitter_ms     INTEGER NOT NULL,
    next_instant  INTEGER,
    next_at       INTEGER,
    paused_at     INTEGER,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;

-- What came of each instant. The key is what makes a schedule fire once: it is written with the job.
CREATE TABLE fires (
    schedule   TEXT NOT NULL,
    instant    INTEGER NOT NULL,
    outcome    TEXT NOT NULL,
    is_manual  INTEGER NOT NULL,
    fired_at   INTEGER NOT NULL,
    job_seq    INTEGER,
    missed     INTEGER NOT NULL,
    why        TEXT,
    PRIMARY KEY (schedule, instant)
) WITHOUT ROWID;
-- Whether an earlier job is still there: instants without one are passed by, however many there are.
CREATE INDEX fires_jobs ON fires (schedule, instant) WHERE job_seq IS NOT NULL;
