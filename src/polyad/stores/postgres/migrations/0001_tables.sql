-- The tables of an index, as in stores/sqlite/schema.sql, without checksums of rows: PostgreSQL has checksums of pages.
-- Primary keys ("number") come from the table counter, whose row each writer locks, so that they grow in the order of
-- commits. There are no foreign keys: a document is deleted by ranges of primary keys. A B-tree accepts at most 2,704
-- bytes: unique texts of any length have hash indexes, others B-trees of their beginnings. The collation "C" sorts as
-- Python and SQLite do.
CREATE TABLE manifest (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- One row: the version of the index, and the last primary keys. Its lock is the order of the change log.
CREATE TABLE counter (
    version BIGINT NOT NULL,
    document BIGINT NOT NULL,
    passage BIGINT NOT NULL,
    hyperedge BIGINT NOT NULL,
    entity BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO counter VALUES (0, 0, 0, 0, 0);

CREATE TABLE document (
    number BIGINT PRIMARY KEY,
    version BIGINT NOT NULL, -- version of the commit that wrote the document
    id TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    url TEXT COLLATE "C" NOT NULL,
    metadata TEXT COLLATE "C" NOT NULL, -- a JSON object
    places TEXT COLLATE "C" NOT NULL, -- pages, sheets or slides: a JSON list of [start, end, page, sheet, slide]
    digest TEXT COLLATE "C" NOT NULL,
    tokens BIGINT NOT NULL,
    recorded TEXT COLLATE "C" NOT NULL, -- time when the index learnt the document
    passages BIGINT NOT NULL, -- number of passages
    text TEXT COLLATE "C" NOT NULL,
    EXCLUDE USING hash (id WITH =)
);
CREATE INDEX document_by_version ON document (version);
CREATE INDEX document_by_source ON document (SUBSTR(source, 1, 500));

-- A random token for each recent version: a copy of the index that continued on its own has other tokens.
CREATE TABLE state (
    version BIGINT PRIMARY KEY,
    token TEXT NOT NULL
);

-- The passages of removed or replaced documents, by the version that removed them; recent versions only.
CREATE TABLE removal (
    version BIGINT NOT NULL,
    first_passage BIGINT NOT NULL,
    last_passage BIGINT NOT NULL,
    PRIMARY KEY (version, first_passage)
);

CREATE TABLE passage (
    number BIGINT PRIMARY KEY, -- consecutive within a document, in its order
    document BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C" NOT NULL, -- title of the document and the headings above the passage
    text TEXT COLLATE "C" NOT NULL,
    "start" BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    page BIGINT,
    heading TEXT COLLATE "C" NOT NULL,
    sheet TEXT COLLATE "C" NOT NULL,
    slide BIGINT,
    digest TEXT COLLATE "C" NOT NULL,
    hyperedges BIGINT NOT NULL, -- number of hyperedges
    vector BYTEA NOT NULL, -- little-endian float32
    EXCLUDE USING hash (id WITH =)
);
CREATE INDEX passage_of_document ON passage (document);
CREATE INDEX passage_by_digest ON passage (digest);

CREATE TABLE hyperedge (
    number BIGINT PRIMARY KEY, -- consecutive within a document, in its order
    passage BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C", -- NULL if equal to the span of the passage
    "start" BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    score DOUBLE PRECISION NOT NULL,
    valid_from TEXT COLLATE "C" NOT NULL, -- empty if unbounded, as valid_to
    valid_to TEXT COLLATE "C" NOT NULL,
    incidences BIGINT NOT NULL, -- number of incidences
    vector BYTEA NOT NULL,
    EXCLUDE USING hash (id WITH =)
);
CREATE INDEX hyperedge_of_passage ON hyperedge (passage);
CREATE INDEX hyperedge_by_kind ON hyperedge (kind);

CREATE TABLE entity (
    number BIGINT PRIMARY KEY,
    key TEXT COLLATE "C" NOT NULL,
    EXCLUDE USING hash (key WITH =)
);

CREATE TABLE incidence (
    entity BIGINT NOT NULL,
    hyperedge BIGINT NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    score DOUBLE PRECISION NOT NULL,
    grounded BIGINT NOT NULL,
    strength DOUBLE PRECISION NOT NULL
);
CREATE INDEX incidence_of_entity ON incidence (entity, hyperedge);
CREATE INDEX incidence_of_hyperedge ON incidence (hyperedge);

-- One row for each hyperedge of kind "tuple": a fact that the user supplied as data.
CREATE TABLE tuple (
    number BIGINT PRIMARY KEY,
    relation TEXT COLLATE "C" NOT NULL,
    arguments BIGINT NOT NULL -- number of arguments
);

CREATE TABLE argument (
    tuple BIGINT NOT NULL,
    place BIGINT NOT NULL, -- from 0, in the user's order
    role TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL, -- on one line, for lookups
    verbatim TEXT COLLATE "C", -- NULL if equal to value
    type TEXT COLLATE "C" NOT NULL,
    unit TEXT COLLATE "C" NOT NULL,
    names TEXT COLLATE "C" NOT NULL, -- names of an entity that is identified by an id: a JSON list
    low DOUBLE PRECISION, -- bounds of a comparable literal, rounded; NULL for other arguments
    "end" DOUBLE PRECISION,
    PRIMARY KEY (tuple, place)
);
CREATE INDEX argument_by_value ON argument (SUBSTR(value, 1, 500));
CREATE INDEX argument_by_names ON argument (tuple) WHERE names <> '[]';
CREATE INDEX argument_by_extent ON argument (low, type) WHERE low IS NOT NULL;

-- Usage of language models for this index, unusable replies included; one row.
CREATE TABLE account (
    calls BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL
);
INSERT INTO account VALUES (0, 0, 0, 0.0);

-- A key-value table: vectors that can be computed again, progress of a rebuild, cached replies of language models.
CREATE TABLE value (
    namespace TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value BYTEA NOT NULL,
    id BYTEA PRIMARY KEY -- SHA-256 of namespace and key, which may be longer than a B-tree accepts
);
CREATE INDEX value_by_namespace ON value (namespace);
