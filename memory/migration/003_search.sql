-- The full-text index, made anew: derived from the log. Rebuild runs this file
-- again, so it also takes away what is there.
DROP TABLE IF EXISTS chunk_fts;
DROP TABLE IF EXISTS chunk;

-- A passage of an observation, a note or a report: the lines first to last of
-- its text (0, 0: it has none). ref is what recall calls it. head is what it
-- came from: the command, the key, the task. A note is for its session alone.
CREATE TABLE chunk (
	id      INTEGER PRIMARY KEY,
	seq     INTEGER NOT NULL REFERENCES event (seq),
	session TEXT    NOT NULL,
	note    INTEGER NOT NULL,
	ref     TEXT    NOT NULL,
	first   INTEGER NOT NULL,
	last    INTEGER NOT NULL,
	head    TEXT    NOT NULL,
	text    TEXT    NOT NULL
) STRICT;
CREATE INDEX chunk_session ON chunk (session, id);
CREATE INDEX chunk_seq ON chunk (seq);

CREATE VIRTUAL TABLE chunk_fts USING fts5 (
	head, text, content = 'chunk', content_rowid = 'id', tokenize = 'porter unicode61'
);

-- What a session remembers is looked up by its key.
CREATE INDEX IF NOT EXISTS event_key ON event (session, body ->> '$.key', seq) WHERE kind IN ('note', 'forget');
