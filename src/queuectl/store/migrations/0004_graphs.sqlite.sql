-- Graphs: jobs that wait for others, keys that only one job may have, and groups. Beside this file: for PostgreSQL.

-- How many of its dependencies are not satisfied; such a job is blocked.
ALTER TABLE jobs ADD COLUMN waits_for INTEGER NOT NULL DEFAULT 0;
-- Whether any job ever waited for it: a plain job that ends asks for nobody.
ALTER TABLE jobs ADD COLUMN has_dependents INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN on_dead TEXT;
-- When it was cancelled because one it waited for ended otherwise; it comes back when that one is revived.
ALTER TABLE jobs ADD COLUMN starved_at INTEGER;
ALTER TABLE jobs ADD COLUMN unique_key TEXT;
ALTER TABLE jobs ADD COLUMN unique_for_ms INTEGER;
ALTER TABLE jobs ADD COLUMN group_name TEXT;
CREATE INDEX jobs_group ON jobs (group_name, state, seq) WHERE group_name IS NOT NULL;

CREATE TABLE edges (
    child_seq   INTEGER NOT NULL,
    parent_seq  INTEGER NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('ok', 'any', 'fail')),
    state       TEXT NOT NULL CHECK (state IN ('waiting', 'satisfied', 'broken')),
    PRIMARY KEY (child_seq, parent_seq)
) WITHOUT ROWID;
CREATE INDEX edges_parent ON edges (parent_seq, child_seq);
-- What a job that ends has to look at, however many waited for it before.
CREATE INDEX edges_open ON edges (parent_seq, child_seq) WHERE state <> 'satisfied';

-- Who has a key: while its job has not ended (held), and until it expires.
CREATE TABLE unique_keys (
    key         TEXT PRIMARY KEY,
    job_seq     INTEGER NOT NULL,
    held        INTEGER NOT NULL,
    expires_at  INTEGER
) WITHOUT ROWID;
CREATE INDEX unique_keys_over ON unique_keys (expires_at) WHERE held = 0;

CREATE TABLE job_groups (
    name          TEXT PRIMARY KEY,
    jobs          INTEGER NOT NULL,
    max_failures  TEXT,
    on_done       TEXT,
    stopped_at    INTEGER,
    done_at       INTEGER,
    created_at    INTEGER NOT NULL
) WITHOUT ROWID;
