-- Gates: what decides whether and where a job may run. Beside this file: the same for PostgreSQL.

ALTER TABLE queues ADD COLUMN concurrency INTEGER;
ALTER TABLE queues ADD COLUMN rate_count INTEGER;
ALTER TABLE queues ADD COLUMN rate_period_ms INTEGER;
-- When the next job may start: a rate is this one time, moved on by each claim.
ALTER TABLE queues ADD COLUMN next_start_at INTEGER;
-- What a job of the queue gets where it says nothing itself.
ALTER TABLE queues ADD COLUMN timeout_ms INTEGER;
ALTER TABLE queues ADD COLUMN max_retries INTEGER;
ALTER TABLE queues ADD COLUMN priority INTEGER;

-- A lane is a queue and what its jobs need of a worker; empty for nothing.
ALTER TABLE lanes ADD COLUMN needs TEXT NOT NULL DEFAULT '';
DROP INDEX lanes_queue;
CREATE UNIQUE INDEX lanes_queue ON lanes (queue, needs);

ALTER TABLE jobs ADD COLUMN needs TEXT;
ALTER TABLE jobs ADD COLUMN limits TEXT;
ALTER TABLE jobs ADD COLUMN parked_for TEXT;
ALTER TABLE jobs ADD COLUMN deadline_ms INTEGER;
ALTER TABLE jobs ADD COLUMN deadline_at INTEGER;
ALTER TABLE jobs ADD COLUMN policy TEXT;
ALTER TABLE jobs ADD COLUMN launch TEXT;
ALTER TABLE jobs ADD COLUMN units TEXT;
-- Plain jobs are in none of these. Parked: those a limit keeps from running, in the order in which it lets them go.
CREATE INDEX jobs_parked   ON jobs (parked_for, lane_id, priority DESC, seq)
    WHERE state = 'blocked' AND parked_for IS NOT NULL;
-- Parked and naming more than one limit: such a job needs them all at once, and others may outrun it.
CREATE INDEX jobs_patient  ON jobs (priority DESC, seq)
    WHERE state = 'blocked' AND parked_for IS NOT NULL AND replace(limits, ',', '') <> limits;
CREATE INDEX jobs_limited  ON jobs (limits, lane_id) WHERE state = 'pending' AND limits IS NOT NULL;
CREATE INDEX jobs_holding  ON jobs (limits) WHERE state = 'processing' AND limits IS NOT NULL;
CREATE INDEX jobs_deadline ON jobs (deadline_at)
    WHERE deadline_at IS NOT NULL AND state IN ('pending', 'scheduled', 'blocked', 'failed');

-- Limits people made. A mutex is a limit of one that nobody makes, and has no row.
CREATE TABLE limits (
    name        TEXT PRIMARY KEY,
    slots       INTEGER NOT NULL,
    created_at  INTEGER NOT NULL
) WITHOUT ROWID;

-- What jobs read on standard input, where it is kept with them.
CREATE TABLE inputs (
    job_seq  INTEGER PRIMARY KEY,
    data     BLOB NOT NULL
);

ALTER TABLE workers ADD COLUMN labels TEXT;
ALTER TABLE workers ADD COLUMN resources TEXT;
ALTER TABLE workers ADD COLUMN weights TEXT;
