-- What hyperedges were given as data: a row here for each of kind "tuple", and one for each of its arguments.
CREATE TABLE given (
    number INTEGER PRIMARY KEY REFERENCES hyperedge (number) ON DELETE CASCADE,
    relation TEXT NOT NULL,
    arguments INTEGER NOT NULL, -- how many there are
    checksum INTEGER NOT NULL
);
CREATE INDEX given_by_relation ON given (relation);

CREATE TABLE argument (
    given INTEGER NOT NULL REFERENCES given (number) ON DELETE CASCADE,
    place INTEGER NOT NULL, -- from 0, in the order given
    role TEXT NOT NULL,
    value TEXT NOT NULL, -- on one line: what it is found by
    verbatim TEXT, -- NULL where it is the same
    type TEXT NOT NULL,
    unit TEXT NOT NULL,
    names TEXT NOT NULL, -- of an entity known by an id: a JSON list
    low REAL, -- of a literal that can be compared, rounded; NULL elsewhere
    "end" REAL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (given, place)
) WITHOUT ROWID;
CREATE INDEX argument_by_value ON argument (role, value);
CREATE INDEX argument_by_names ON argument (role) WHERE names <> '[]';
CREATE INDEX argument_by_extent ON argument (role, type, low) WHERE low IS NOT NULL;
