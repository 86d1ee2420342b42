CREATE TRIGGER attempts_result AFTER INSERT ON attempts
WHEN NEW.result = 'completed' AND (NEW.outcome <> 'exited' OR NEW.error IS NOT NULL)
BEGIN
    UPDATE attempts
       SET queue = COALESCE((SELECT queue FROM jobs WHERE seq = NEW.job_seq), queue),
           result = CASE WHEN NEW.outcome <> 'exited' THEN NEW.outcome
                         WHEN substr(NEW.error, 1, 24) = 'asked to run again later' THEN 'snoozed'
                         ELSE 'failed' END
     WHERE job_seq = NEW.job_seq AND run = NEW.run;
END;

CREATE TABLE attempts (
    job_seq            INTEGER NOT NULL,
    run                INTEGER NOT NULL,
    attempt            INTEGER NOT NULL,
    worker_id          TEXT NOT NULL,
    host               TEXT NOT NULL,
    started_at         INTEGER NOT NULL,
    finished_at        INTEGER NOT NULL,
    outcome            TEXT NOT NULL,
    exit_code          INTEGER,
    signal             INTEGER,
    error              TEXT,
    cpu_ms             INTEGER,
    peak_memory_bytes  INTEGER,
    output_bytes       INTEGER NOT NULL DEFAULT 0,
    output_file        TEXT,
    output_tail        BLOB NOT NULL,
    stderr_bytes INTEGER,
    stderr_file TEXT,
    stderr_tail BLOB,
    waited_ms INTEGER,
    queue TEXT NOT NULL DEFAULT 'default',
    result TEXT NOT NULL DEFAULT 'completed',
    PRIMARY KEY (job_seq, run)
) WITHOUT ROWID;

CREATE INDEX attempts_ended ON attempts (result, finished_at, started_at, waited_ms, queue);

CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    who     TEXT NOT NULL,
    action  TEXT NOT NULL,
    target  TEXT,
    count   INTEGER NOT NULL
);

CREATE TABLE config (
    key         TEXT PRIMARY KEY,
    value       TEXT NOT NULL,
    updated_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE edges (
    child_seq   INTEGER NOT NULL,
    parent_seq  INTEGER NOT NULL,
    kind        TEXT NOT NULL CHECK (kind = 'ok' OR kind = 'any' OR kind = 'fail'),
    state       TEXT NOT NULL CHECK (state = 'waiting' OR state = 'satisfied' OR state = 'broken'),
    PRIMARY KEY (child_seq, parent_seq)
) WITHOUT ROWID;

CREATE INDEX edges_open ON edges (parent_seq, child_seq) WHERE state <> 'satisfied';

CREATE INDEX edges_parent ON edges (parent_seq, child_seq);

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

CREATE INDEX fires_jobs ON fires (schedule, instant) WHERE job_seq IS NOT NULL;

CREATE TABLE inputs (
    job_seq  INTEGER PRIMARY KEY,
    data     BLOB NOT NULL
);

CREATE TABLE job_groups (
    name          TEXT PRIMARY KEY,
    jobs          INTEGER NOT NULL,
    max_failures  TEXT,
    on_done       TEXT,
    stopped_at    INTEGER,
    done_at       INTEGER,
    created_at    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE jobs (
    seq               INTEGER PRIMARY KEY AUTOINCREMENT,
    given_id          TEXT,
    state             TEXT NOT NULL CHECK (state = 'pending' OR state = 'processing' OR state = 'completed' OR state = 'scheduled'
                          OR state = 'blocked' OR state = 'failed' OR state = 'dead' OR state = 'cancelled'),
    queue             TEXT NOT NULL,
    lane_id           INTEGER NOT NULL,
    priority          INTEGER NOT NULL DEFAULT 0,
    run               INTEGER NOT NULL DEFAULT 0,
    attempts          INTEGER NOT NULL DEFAULT 0,
    losses            INTEGER NOT NULL DEFAULT 0,
    max_retries       INTEGER NOT NULL,
    cancel_requested  INTEGER NOT NULL DEFAULT 0,
    worker_id         TEXT,
    run_at            INTEGER,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    started_at        INTEGER,
    finished_at       INTEGER,
    exit_code         INTEGER,
    error             TEXT,
    timeout_ms        INTEGER,
    backoff           TEXT,
    cwd               TEXT,
    env               TEXT,
    tags              TEXT,
    command           TEXT,
    argv              TEXT,
    held_at INTEGER,
    split_output INTEGER NOT NULL DEFAULT 0,
    needs TEXT,
    limits TEXT,
    parked_for TEXT,
    deadline_ms INTEGER,
    deadline_at INTEGER,
    policy TEXT,
    launch TEXT,
    units TEXT,
    waits_for INTEGER NOT NULL DEFAULT 0,
    has_dependents INTEGER NOT NULL DEFAULT 0,
    on_dead TEXT,
    starved_at INTEGER,
    unique_key TEXT,
    unique_for_ms INTEGER,
    group_name TEXT,
    waited_ms INTEGER,
    CHECK ((command IS NULL) <> (argv IS NULL)),
    CHECK ((state = 'processing') = (worker_id IS NOT NULL)),
    CHECK (state NOT IN ('scheduled', 'failed') OR run_at IS NOT NULL),
    CHECK ((state = 'completed' OR state = 'dead' OR state = 'cancelled') = (finished_at IS NOT NULL))
);

CREATE INDEX jobs_blocked  ON jobs (lane_id) WHERE state = 'blocked';

CREATE INDEX jobs_deadline ON jobs (deadline_at)
    WHERE deadline_at IS NOT NULL AND state IN ('pending', 'scheduled', 'blocked', 'failed');

CREATE INDEX jobs_due      ON jobs (run_at, state, lane_id) WHERE state IN ('scheduled', 'failed');

CREATE INDEX jobs_finished ON jobs (state, finished_at, lane_id)
    WHERE state = 'completed' OR state = 'dead' OR state = 'cancelled';

CREATE UNIQUE INDEX jobs_given_id ON jobs (given_id) WHERE given_id IS NOT NULL;

CREATE INDEX jobs_group ON jobs (group_name, state, seq) WHERE group_name IS NOT NULL;

CREATE INDEX jobs_holding  ON jobs (limits) WHERE state = 'processing' AND limits IS NOT NULL;

CREATE INDEX jobs_limited  ON jobs (limits, lane_id) WHERE state = 'pending' AND limits IS NOT NULL;

CREATE INDEX jobs_parked   ON jobs (parked_for, lane_id, priority DESC, seq)
    WHERE state = 'blocked' AND parked_for IS NOT NULL;

CREATE INDEX jobs_patient  ON jobs (priority DESC, seq)
    WHERE state = 'blocked' AND parked_for IS NOT NULL AND replace(limits, ',', '') <> limits;

CREATE INDEX jobs_priority ON jobs (priority DESC, seq) WHERE priority <> 0;

CREATE INDEX jobs_ready    ON jobs (lane_id, priority DESC, seq) WHERE state = 'pending';

CREATE INDEX jobs_running  ON jobs (worker_id, lane_id) WHERE state = 'processing';

CREATE INDEX jobs_started  ON jobs (started_at, seq) WHERE started_at IS NOT NULL;

CREATE INDEX jobs_tagged   ON jobs (seq) WHERE tags IS NOT NULL;

CREATE TABLE lanes (
    id     INTEGER PRIMARY KEY,
    queue  TEXT NOT NULL REFERENCES queues (name),
    needs TEXT NOT NULL DEFAULT ''
);

CREATE UNIQUE INDEX lanes_queue ON lanes (queue, needs);

CREATE TABLE limits (
    name        TEXT PRIMARY KEY,
    slots       INTEGER NOT NULL,
    created_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE queues (
    name        TEXT PRIMARY KEY,
    paused_at   INTEGER,
    created_at  INTEGER NOT NULL,
    concurrency INTEGER,
    rate_count INTEGER,
    rate_period_ms INTEGER,
    next_start_at INTEGER,
    timeout_ms INTEGER,
    max_retries INTEGER,
    priority INTEGER
) WITHOUT ROWID;

CREATE TABLE requests (
    key         TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    answer      TEXT NOT NULL,
    expires_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX requests_expiry ON requests (expires_at);

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

CREATE TABLE tokens (
    id             TEXT PRIMARY KEY,
    name           TEXT NOT NULL UNIQUE,
    role           TEXT NOT NULL CHECK (role IN ('read', 'submit', 'operate', 'admin')),
    hash           TEXT NOT NULL UNIQUE,
    created_at     INTEGER NOT NULL,
    created_by     TEXT NOT NULL,
    expires_at     INTEGER,
    last_used_at   INTEGER,
    last_used_from TEXT
) WITHOUT ROWID;

CREATE TABLE unique_keys (
    key         TEXT PRIMARY KEY,
    job_seq     INTEGER NOT NULL,
    held        INTEGER NOT NULL,
    expires_at  INTEGER
) WITHOUT ROWID;

CREATE INDEX unique_keys_over ON unique_keys (expires_at) WHERE held = 0;

CREATE TABLE watchers (
    id          TEXT PRIMARY KEY,
    expires_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE workers (
    id             TEXT PRIMARY KEY,
    kind           TEXT NOT NULL CHECK (kind IN ('worker', 'supervisor')),
    state          TEXT NOT NULL CHECK (state IN ('live', 'ended', 'lost')),
    supervisor_id  TEXT,
    pid            INTEGER NOT NULL,
    host           TEXT NOT NULL,
    boot_id        TEXT NOT NULL,
    pid_namespace  TEXT NOT NULL,
    lock_path      TEXT NOT NULL,
    version        TEXT NOT NULL,
    queues         TEXT,
    slots          INTEGER NOT NULL,
    stop           TEXT CHECK (stop IN ('drain', 'now')),
    beats          INTEGER NOT NULL DEFAULT 0,
    beat_at        INTEGER NOT NULL,
    started_at     INTEGER NOT NULL,
    ended_at       INTEGER,
    lease_ms       INTEGER NOT NULL,
    restart        INTEGER NOT NULL DEFAULT 0,
    labels TEXT,
    resources TEXT,
    weights TEXT
) WITHOUT ROWID;

CREATE INDEX workers_live ON workers (id) WHERE state = 'live';

