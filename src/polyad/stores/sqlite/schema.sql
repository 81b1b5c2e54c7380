-- The tables of an index. Every row belongs to one document and goes with it; entities are the view over incidences.
-- A number is never given again: whoever knows a row by its number finds that row or none. A checksum is of all other
-- columns of its row.
CREATE TABLE manifest (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE document (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    version INTEGER NOT NULL, -- of the index, by the commit that wrote it
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    source TEXT NOT NULL,
    url TEXT NOT NULL,
    metadata TEXT NOT NULL, -- a JSON object
    places TEXT NOT NULL, -- pages, sheets or slides: a JSON list of [start, end, page, sheet, slide]
    digest TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    passages INTEGER NOT NULL, -- how many there are
    text_checksum INTEGER NOT NULL,
    checksum INTEGER NOT NULL, -- of all but the text, which may be long
    text TEXT NOT NULL -- the last: what stands behind a long one is slow to reach
);
CREATE INDEX document_by_version ON document (version);

-- What tells the index at a version from another of as many changes, such as a copy that went on by itself; of late
-- versions only.
CREATE TABLE state (
    version INTEGER PRIMARY KEY,
    token TEXT NOT NULL
);

-- The passages of documents that were removed or replaced, by the version that did it; of late versions only.
CREATE TABLE removal (
    version INTEGER NOT NULL,
    first_passage INTEGER NOT NULL,
    last_passage INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (version, first_passage)
) WITHOUT ROWID;

CREATE TABLE passage (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- consecutive within a document, in its order
    document INTEGER NOT NULL REFERENCES document (number) ON DELETE CASCADE,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL, -- the document's, with the headings above the passage
    text TEXT NOT NULL,
    "start" INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    page INTEGER,
    heading TEXT NOT NULL,
    sheet TEXT NOT NULL,
    slide INTEGER,
    digest TEXT NOT NULL,
    vector BLOB NOT NULL,
    hyperedges INTEGER NOT NULL, -- how many there are
    checksum INTEGER NOT NULL
);
CREATE INDEX passage_of_document ON passage (document);
CREATE INDEX passage_by_digest ON passage (digest);

CREATE TABLE hyperedge (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- consecutive within a document, in its order
    passage INTEGER NOT NULL REFERENCES passage (number) ON DELETE CASCADE,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    text TEXT, -- NULL where it is the span of the passage, word for word
    "start" INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    score REAL NOT NULL,
    vector BLOB NOT NULL,
    incidences INTEGER NOT NULL, -- how many there are
    checksum INTEGER NOT NULL
);
CREATE INDEX hyperedge_of_passage ON hyperedge (passage);

CREATE TABLE entity (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    checksum INTEGER NOT NULL
);

CREATE TABLE incidence (
    entity INTEGER NOT NULL REFERENCES entity (number),
    hyperedge INTEGER NOT NULL REFERENCES hyperedge (number) ON DELETE CASCADE,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    description TEXT NOT NULL,
    score REAL NOT NULL,
    grounded INTEGER NOT NULL,
    strength REAL NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (entity, hyperedge, role)
) WITHOUT ROWID;
CREATE INDEX incidence_of_hyperedge ON incidence (hyperedge);

-- A cache: the vector of an entity's name and descriptions as they were when it was embedded, by a digest of that text.
CREATE TABLE entity_vector (
    entity INTEGER PRIMARY KEY REFERENCES entity (number) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    vector BLOB NOT NULL,
    checksum INTEGER NOT NULL
);

-- What language models have cost this index, replies that could not be used included; one row.
CREATE TABLE account (
    calls INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost REAL NOT NULL
);
INSERT INTO account VALUES (0, 0, 0, 0.0);
