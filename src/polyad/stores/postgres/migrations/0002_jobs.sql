-- Files to read and documents to index, which workers on any machine take. A row is deleted when its command ends.
CREATE TABLE job (
    id BYTEA PRIMARY KEY, -- SHA-256 of the name, and of whether it is a file's
    number BIGINT GENERATED ALWAYS AS IDENTITY,
    run TEXT COLLATE "C" NOT NULL, -- token of the command that queued the job
    kind TEXT COLLATE "C" NOT NULL, -- read, extract or embed: the next step
    name TEXT COLLATE "C" NOT NULL, -- path of a file, or id of a document
    method TEXT COLLATE "C" NOT NULL, -- construction method; empty for the method of each document
    content TEXT COLLATE "C" NOT NULL, -- working folder of a file, or the JSON of a document; empty after the end
    size BIGINT NOT NULL, -- characters of the document
    state TEXT COLLATE "C" NOT NULL DEFAULT 'queued', -- queued, done or failed
    attempts BIGINT NOT NULL DEFAULT 0, -- attempts that failed, or that had no other job in their batch
    is_suspect BOOLEAN NOT NULL DEFAULT FALSE, -- whether an attempt did not end: the next batch has no other job
    worker TEXT COLLATE "C" NOT NULL DEFAULT '', -- holder of the lease
    leased_until TIMESTAMPTZ NOT NULL DEFAULT '-infinity',
    outcome TEXT COLLATE "C" NOT NULL DEFAULT '{}' -- JSON: counts, or the reason of the last failure
);
CREATE INDEX job_in_order ON job (kind, number) WHERE state = 'queued';
CREATE INDEX job_of_worker ON job (worker) WHERE worker <> '';
CREATE INDEX job_of_run ON job (run);

-- Requests to language models of the last minute, for limits that all workers share.
CREATE TABLE request (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model TEXT COLLATE "C" NOT NULL,
    sent TIMESTAMPTZ NOT NULL,
    tokens BIGINT NOT NULL -- an estimate until the reply arrives
);
CREATE INDEX request_of_model ON request (model, sent);
