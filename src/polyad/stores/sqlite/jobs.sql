-- Jobs and uploaded files, in a file of their own: an index of an earlier version needs no step, and uploads leave no
-- free pages in the index.
CREATE TABLE job (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE, -- SHA-256 of the name, and of whether it is a file's
    run TEXT NOT NULL, -- token of the command or the request that queued the job
    kind TEXT NOT NULL,
    name TEXT NOT NULL, -- path of a file, or id of a document or of a request
    method TEXT NOT NULL,
    content TEXT NOT NULL,
    size INTEGER NOT NULL,
    source TEXT NOT NULL,
    digest TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued', -- queued, done, failed or cancelled
    attempts INTEGER NOT NULL DEFAULT 0,
    is_suspect INTEGER NOT NULL DEFAULT 0, -- whether an attempt did not end
    worker TEXT NOT NULL DEFAULT '',
    leased_until REAL NOT NULL DEFAULT 0, -- seconds since 1970
    reason TEXT NOT NULL DEFAULT '',
    removed TEXT NOT NULL DEFAULT '[]', -- JSON: ids of documents that were removed before the job ended
    revision INTEGER NOT NULL DEFAULT 1,
    created TEXT NOT NULL,
    ended TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL -- JSON
);
CREATE INDEX job_in_order ON job (kind, number) WHERE state = 'queued';
CREATE INDEX job_of_worker ON job (worker) WHERE worker <> '';
CREATE INDEX job_of_run ON job (run);
CREATE INDEX job_open ON job (kind, number) WHERE state = 'queued' OR worker <> ''; -- for the look of an idle server

CREATE TABLE job_file (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    place INTEGER NOT NULL,
    content BLOB NOT NULL,
    UNIQUE (run, place)
);
