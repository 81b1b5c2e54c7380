-- The tables of an index. Every row belongs to one document and is deleted with it; an entity is derived from its
-- incidences and deleted with the last of them. Primary keys ("number") are never reused: a reader that knows a row by
-- number finds this row or none. A checksum covers all other columns of its row.
CREATE TABLE manifest (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE document (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    version INTEGER NOT NULL, -- store version of the commit that wrote the document
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    source TEXT NOT NULL,
    url TEXT NOT NULL,
    metadata TEXT NOT NULL, -- a JSON object
    places TEXT NOT NULL, -- pages, sheets or slides: a JSON list of [start, end, page, sheet, slide]
    digest TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    recorded TEXT NOT NULL, -- time when the index learnt the document
    passages INTEGER NOT NULL, -- number of passages
    text_checksum INTEGER NOT NULL,
    checksum INTEGER NOT NULL, -- of all columns but the text, which may be long
    text TEXT NOT NULL -- last: SQLite reads columns behind a long text slowly
);
CREATE INDEX document_by_version ON document (version);
CREATE INDEX document_by_source ON document (source);

-- A random token for each recent version: a copy of the index that continued on its own has other tokens.
CREATE TABLE state (
    version INTEGER PRIMARY KEY,
    token TEXT NOT NULL
);

-- The passages of removed or replaced documents, by the version that removed them; recent versions only.
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
    title TEXT NOT NULL, -- title of the document and the headings above the passage
    text TEXT NOT NULL,
    "start" INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    page INTEGER,
    heading TEXT NOT NULL,
    sheet TEXT NOT NULL,
    slide INTEGER,
    digest TEXT NOT NULL,
    vector BLOB NOT NULL,
    hyperedges INTEGER NOT NULL, -- number of hyperedges
    checksum INTEGER NOT NULL
);
CREATE INDEX passage_of_document ON passage (document);
CREATE INDEX passage_by_digest ON passage (digest);

CREATE TABLE hyperedge (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- consecutive within a document, in its order
    passage INTEGER NOT NULL REFERENCES passage (number) ON DELETE CASCADE,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    text TEXT, -- NULL if equal to the span of the passage
    "start" INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    score REAL NOT NULL,
    valid_from TEXT NOT NULL, -- empty if unbounded, as valid_to
    valid_to TEXT NOT NULL,
    vector BLOB NOT NULL,
    incidences INTEGER NOT NULL, -- number of incidences
    checksum INTEGER NOT NULL
);
CREATE INDEX hyperedge_of_passage ON hyperedge (passage);
CREATE INDEX hyperedge_by_kind ON hyperedge (kind);

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

-- One row for each hyperedge of kind "tuple": a fact that the user supplied as data.
CREATE TABLE tuple (
    number INTEGER PRIMARY KEY REFERENCES hyperedge (number) ON DELETE CASCADE,
    relation TEXT NOT NULL,
    arguments INTEGER NOT NULL, -- number of arguments
    checksum INTEGER NOT NULL
);
CREATE INDEX tuple_by_relation ON tuple (relation);

CREATE TABLE argument (
    tuple INTEGER NOT NULL REFERENCES tuple (number) ON DELETE CASCADE,
    place INTEGER NOT NULL, -- from 0, in the user's order
    role TEXT NOT NULL,
    value TEXT NOT NULL, -- on one line, for lookups
    verbatim TEXT, -- NULL if equal to value
    type TEXT NOT NULL,
    unit TEXT NOT NULL,
    names TEXT NOT NULL, -- names of an entity that is identified by an id: a JSON list
    low REAL, -- bounds of a comparable literal, rounded; NULL for other arguments
    "end" REAL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (tuple, place)
) WITHOUT ROWID;
CREATE INDEX argument_by_value ON argument (role, value);
CREATE INDEX argument_by_names ON argument (role) WHERE names <> '[]';
CREATE INDEX argument_by_extent ON argument (role, type, low) WHERE low IS NOT NULL;

-- Usage of language models for this index, unusable replies included; one row.
CREATE TABLE account (
    calls INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost REAL NOT NULL
);
INSERT INTO account VALUES (0, 0, 0, 0.0);
