-- Names are kept once and points refer to them by number, so a point costs about
-- 40 bytes. The primary key of point is the identity of a point, and lies in the
-- order in which one trial's curves are read.
CREATE TABLE trial (
	id        INTEGER PRIMARY KEY,
	uid       TEXT NOT NULL UNIQUE,
	namespace TEXT NOT NULL,
	name      TEXT NOT NULL
);
CREATE TABLE metric (
	id    INTEGER PRIMARY KEY,
	trial INTEGER NOT NULL REFERENCES trial,
	name  TEXT NOT NULL,
	UNIQUE (trial, name)
);
CREATE TABLE attempt (
	id      INTEGER PRIMARY KEY,
	trial   INTEGER NOT NULL REFERENCES trial,
	name    TEXT NOT NULL,
	started INTEGER,           -- Unix nanoseconds; NULL: not known
	final   INTEGER NOT NULL DEFAULT 0,
	note    TEXT NOT NULL DEFAULT '',
	UNIQUE (trial, name)
);
CREATE TABLE source (
	id      INTEGER PRIMARY KEY,
	attempt INTEGER NOT NULL REFERENCES attempt,
	name    TEXT NOT NULL,
	acked   INTEGER NOT NULL,  -- largest seq stored, plus one
	UNIQUE (attempt, name)
);
CREATE TABLE point (
	source INTEGER NOT NULL REFERENCES source,
	seq    INTEGER NOT NULL,
	metric INTEGER NOT NULL REFERENCES metric,
	step   INTEGER NOT NULL,
	time   INTEGER,            -- Unix nanoseconds; NULL: not known
	value,                     -- NULL: NaN, which SQLite does not have; no type, because REAL loses the sign of -0
	text   TEXT,               -- as written, when not the shortest form
	PRIMARY KEY (source, seq)
) WITHOUT ROWID;
