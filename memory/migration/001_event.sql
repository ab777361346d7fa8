-- The log. at is nanoseconds since 1970; body is JSON; hash covers everything
-- else in its row (see Event.sum).
CREATE TABLE event (
	seq       INTEGER PRIMARY KEY,
	session   TEXT    NOT NULL,
	kind      TEXT    NOT NULL,
	at        INTEGER NOT NULL,
	body      TEXT    NOT NULL,
	prev_hash BLOB    NOT NULL,
	hash      BLOB    NOT NULL
) STRICT;

CREATE INDEX event_session ON event (session, seq);
CREATE INDEX event_kind ON event (kind, seq) WHERE kind IN ('start', 'note');
CREATE INDEX event_stop ON event (session, seq) WHERE kind = 'stop';
CREATE INDEX event_observation ON event (session, body ->> '$.id') WHERE kind = 'observation';

-- Append-only also for whoever opens the file with another program.
CREATE TRIGGER event_no_update BEFORE UPDATE ON event
BEGIN SELECT raise(ABORT, 'the event log is append-only'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event
BEGIN SELECT raise(ABORT, 'the event log is append-only'); END;
