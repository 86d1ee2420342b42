-- Schedules: jobs that come again and again. Beside this file: the same for SQLite.

CREATE TABLE schedules (
    name          TEXT PRIMARY KEY,
    -- A line in the zone, or a period and the instant it is counted from.
    cron          TEXT,
    every_ms      BIGINT,
    anchor        BIGINT,
    tz            TEXT NOT NULL,
    job           TEXT NOT NULL,
    misfire       TEXT NOT NULL,
    misfire_cap   INTEGER NOT NULL,
    overlap       TEXT NOT NULL,
    jitter_ms     BIGINT NOT NULL,
    next_instant  BIGINT,
    next_at       BIGINT,
    paused_at     BIGINT,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;

-- What came of each instant. The key is what makes a schedule fire once: it is written with the job.
CREATE TABLE fires (
    schedule   TEXT NOT NULL,
    instant    BIGINT NOT NULL,
    outcome    TEXT NOT NULL,
    is_manual  INTEGER NOT NULL,
    fired_at   BIGINT NOT NULL,
    job_seq    BIGINT,
    missed     INTEGER NOT NULL,
    why        TEXT,
    PRIMARY KEY (schedule, instant)
);
-- Whether an earlier job is still there: instants without one are passed by, however many there are.
CREATE INDEX fires_jobs ON fires (schedule, instant) WHERE job_seq IS NOT NULL;
