-- What the web face needs: how long runs waited, runs by the time they ended, tokens, and requests that came once.
-- Beside this file: the same for SQLite.

-- From when it was ready until it was taken; written by the claim, kept with the run.
ALTER TABLE jobs ADD COLUMN waited_ms BIGINT;
ALTER TABLE attempts ADD COLUMN waited_ms BIGINT;

-- The queue it ran in, which its job may leave later. The default is where most are, so that only the others are written anew.
ALTER TABLE attempts ADD COLUMN queue TEXT NOT NULL DEFAULT 'default';

-- What came of a run, where its outcome leaves that open: a command that exited did well, failed, or asked to run later.
-- Here, too, the default is what most runs came to.
ALTER TABLE attempts ADD COLUMN result TEXT NOT NULL DEFAULT 'completed';

-- Both at once: each time a row is written, its old version stays behind until a vacuum.
UPDATE attempts
   SET queue = COALESCE((SELECT jobs.queue FROM jobs WHERE jobs.seq = attempts.job_seq), attempts.queue),
       result = CASE WHEN outcome <> 'exited' THEN outcome
                     WHEN error IS NULL THEN 'completed'
                     WHEN substr(error, 1, 24) = 'asked to run again later' THEN 'snoozed'
                     ELSE 'failed' END
 WHERE outcome <> 'exited' OR error IS NOT NULL
    OR job_seq IN (SELECT seq FROM jobs WHERE queue <> 'default');

-- Workers of the schema before this one go on until they are restarted, and leave the default in place: what they say
-- failed must not count as completed.
CREATE FUNCTION attempts_result() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.queue := COALESCE((SELECT queue FROM jobs WHERE seq = NEW.job_seq), NEW.queue);
    NEW.result := CASE WHEN NEW.outcome <> 'exited' THEN NEW.outcome
                       WHEN substr(NEW.error, 1, 24) = 'asked to run again later' THEN 'snoozed'
                       ELSE 'failed' END;
    RETURN NEW;
END
$$;
CREATE TRIGGER attempts_result BEFORE INSERT ON attempts FOR EACH ROW
WHEN (NEW.result = 'completed' AND (NEW.outcome <> 'exited' OR NEW.error IS NOT NULL))
EXECUTE FUNCTION attempts_result();

-- Covers every figure of a time range (store/stats.py), so that no run itself is read.
CREATE INDEX attempts_ended ON attempts (result, finished_at, started_at, waited_ms, queue);

-- Jobs by when they last started, and by priority where that is not the usual one: lists in these orders (listing.py).
CREATE INDEX jobs_started  ON jobs (started_at, seq) WHERE started_at IS NOT NULL;
CREATE INDEX jobs_priority ON jobs (priority DESC, seq) WHERE priority <> 0;

-- Only a hash is kept: nobody who reads this table can log in with it.
CREATE TABLE tokens (
    id             TEXT PRIMARY KEY,
    name           TEXT NOT NULL UNIQUE,
    role           TEXT NOT NULL CHECK (role IN ('read', 'submit', 'operate', 'admin')),
    hash           TEXT NOT NULL UNIQUE,
    created_at     BIGINT NOT NULL,
    created_by     TEXT NOT NULL,
    expires_at     BIGINT,
    last_used_at   BIGINT,
    last_used_from TEXT
);

-- Answers to requests that must have an effect once, by the key their sender gave (Idempotency-Key).
CREATE TABLE requests (
    key         TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    answer      TEXT NOT NULL,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX requests_expiry ON requests (expires_at);
