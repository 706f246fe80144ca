-- The index of a store of millstream's lab. It is made from the run folders and can be made again from them.
-- One row a run.
CREATE TABLE runs (
    id         TEXT PRIMARY KEY,  -- the folder's name
    recipe     TEXT NOT NULL,
    title      TEXT NOT NULL,
    size       TEXT NOT NULL,
    overrides  TEXT NOT NULL,     -- --set, a JSON list
    command    TEXT NOT NULL,     -- a JSON list
    seed       INTEGER NOT NULL,  -- of the order of trials
    started_ms INTEGER NOT NULL,  -- Unix milliseconds
    ended_ms   INTEGER,           -- none while it runs, or after a crash
    state      TEXT NOT NULL,     -- unfinished, interrupted, complete
    trials     INTEGER NOT NULL,  -- planned
    host       TEXT NOT NULL,
    kernel     TEXT NOT NULL,
    cpu        TEXT NOT NULL,
    cores      INTEGER NOT NULL,
    millstream TEXT NOT NULL,     -- version that measured
    revision   TEXT               -- its commit, if it came from a checkout
);
-- One row an attempt at a trial.
CREATE TABLE trials (
    run        TEXT NOT NULL,
    trial      INTEGER NOT NULL,  -- from 1, as the folders are named
    attempt    INTEGER NOT NULL,  -- from 1
    block      INTEGER NOT NULL,
    system     TEXT,
    point      TEXT NOT NULL,     -- axis to value, JSON: point ->> '$.workers'
    again      INTEGER NOT NULL,  -- 1: the first system's second run in a block, for the noise floor
    status     TEXT NOT NULL,     -- measured, void, absent, failed
    reason     TEXT,              -- of the last three
    side       TEXT,              -- what was the limit: server-bound, client-bound, …
    evidence   TEXT,
    started_ms INTEGER NOT NULL,
    seconds    REAL NOT NULL,
    PRIMARY KEY (run, trial, attempt)
) WITHOUT ROWID;
-- One row a figure.
CREATE TABLE figures (
    run     TEXT NOT NULL,
    trial   INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    metric  TEXT NOT NULL,
    value   REAL NOT NULL,
    PRIMARY KEY (run, trial, attempt, metric)
) WITHOUT ROWID;
-- What the names of figures mean.
CREATE TABLE metrics (
    metric TEXT PRIMARY KEY,
    title  TEXT NOT NULL,
    unit   TEXT NOT NULL,
    better TEXT NOT NULL          -- higher, lower, neither
) WITHOUT ROWID;
CREATE INDEX figures_by_metric ON figures (metric, run);
-- What comparisons are made of: measured, not void, not the second run of a block.
CREATE VIEW measured AS
    SELECT t.run, r.recipe, r.size, r.started_ms, r.host, r.millstream, r.revision,
           t.trial, t.block, t.system, t.point, t.side, f.metric, f.value
    FROM figures f
    JOIN trials t ON t.run = f.run AND t.trial = f.trial AND t.attempt = f.attempt
    JOIN runs r ON r.id = t.run
    WHERE t.status = 'measured' AND t.again = 0;
