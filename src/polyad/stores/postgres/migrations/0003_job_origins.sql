-- Documents of one command with the same id and other content are failures.
ALTER TABLE job ADD COLUMN source TEXT COLLATE "C" NOT NULL DEFAULT ''; -- file of the document
ALTER TABLE job ADD COLUMN digest TEXT COLLATE "C" NOT NULL DEFAULT ''; -- hash of the content of the document
