-- A key-value table: vectors that can be computed again, progress of a rebuild, cached replies of language models.
CREATE TABLE value (
    number INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (namespace, key)
);
