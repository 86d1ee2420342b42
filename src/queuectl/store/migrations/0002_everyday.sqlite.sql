-- Held jobs, output kept as two streams, and who watches. Beside this file: the same for PostgreSQL.

ALTER TABLE jobs ADD COLUMN held_at INTEGER;
ALTER TABLE jobs ADD COLUMN split_output INTEGER NOT NULL DEFAULT 0;

-- NULL: both streams are in output_*.
ALTER TABLE attempts ADD COLUMN stderr_bytes INTEGER;
ALTER TABLE attempts ADD COLUMN stderr_file TEXT;
ALTER TABLE attempts ADD COLUMN stderr_tail BLOB;

-- Used on PostgreSQL alone, where telling of changes is dear; here a file in the home is touched.
CREATE TABLE watchers (
    id          TEXT PRIMARY KEY,
    expires_at  INTEGER NOT NULL
) WITHOUT ROWID;
