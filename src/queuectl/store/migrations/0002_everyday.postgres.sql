-- Held jobs, output kept as two streams, and who watches. Beside this file: the same for SQLite.

ALTER TABLE jobs ADD COLUMN held_at BIGINT;
ALTER TABLE jobs ADD COLUMN split_output INTEGER NOT NULL DEFAULT 0;

-- NULL: both streams are in output_*.
ALTER TABLE attempts ADD COLUMN stderr_bytes BIGINT;
ALTER TABLE attempts ADD COLUMN stderr_file TEXT;
ALTER TABLE attempts ADD COLUMN stderr_tail BYTEA;

-- Whoever waits for changes has a row here, renewed while it waits: commits that notify are made one at a time by the
-- server, so workers notify only when somebody listens.
CREATE TABLE watchers (
    id          TEXT PRIMARY KEY,
    expires_at  BIGINT NOT NULL
);
