"""Files that hold a whole index, one format a file: to move an index, to back it up, or to read it elsewhere."""
