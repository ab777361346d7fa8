-- The full-text index: derived from the log. Rebuild runs this file again, so
-- it also takes away what is there.
DROP TABLE IF EXISTS chunk_fts;
DROP TABLE IF EXISTS chunk;

-- About 1,000 bytes of an observation (id > 0) or of a note (id < 0). The
-- chunks of a session lie close together, so that a search in a session or in
-- the notes is a range of ids, which FTS5 can use.
CREATE TABLE chunk (
	id      INTEGER PRIMARY KEY,
	session TEXT NOT NULL,
	ref     TEXT NOT NULL,
	text    TEXT NOT NULL
) STRICT;
CREATE INDEX chunk_session ON chunk (session, id);

CREATE VIRTUAL TABLE chunk_fts USING fts5 (
	text, content = 'chunk', content_rowid = 'id', tokenize = 'porter unicode61'
);
