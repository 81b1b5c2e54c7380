-- By these it is known what an index holds, and what came from a file or folder, without going over all of it. An index
-- made before there were any is read without them.
CREATE INDEX document_by_source ON document (source);
CREATE INDEX hyperedge_by_kind ON hyperedge (kind);
