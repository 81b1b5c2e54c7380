-- Requests of clients are jobs too; the files of an upload are rows, which are deleted when its job ends.
ALTER TABLE job ALTER COLUMN leased_until DROP DEFAULT;
ALTER TABLE job ALTER COLUMN leased_until TYPE DOUBLE PRECISION USING 0; -- seconds since 1970
ALTER TABLE job ALTER COLUMN leased_until SET DEFAULT 0;
ALTER TABLE job ADD COLUMN reason TEXT COLLATE "C" NOT NULL DEFAULT ''; -- of the last failure
ALTER TABLE job ADD COLUMN removed TEXT COLLATE "C" NOT NULL DEFAULT '[]'; -- JSON: ids of documents removed meanwhile
ALTER TABLE job ADD COLUMN revision BIGINT NOT NULL DEFAULT 1; -- number of this state
ALTER TABLE job ADD COLUMN created TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN ended TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE TABLE job_file (
    run TEXT COLLATE "C" NOT NULL,
    place BIGINT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (run, place)
);
