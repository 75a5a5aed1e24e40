-- Names are kept once and points refer to them by number. Names and texts are
-- bytes: they may hold anything, NUL too, and no collation makes two of them one.
-- The primary key of point is the identity of a point, and its order is that in
-- which one trial's curves are read. It has no foreign keys: they would cost more
-- than the row.
CREATE TABLE trial (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	uid        bytea NOT NULL UNIQUE,
	namespace  bytea NOT NULL,
	name       bytea NOT NULL,
	experiment bytea NOT NULL,
	touched    bigint NOT NULL     -- Unix seconds of the last report, an hour late at most
);
CREATE INDEX trial_experiment ON trial (namespace, experiment);
CREATE TABLE metric (
	id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	trial bigint NOT NULL REFERENCES trial,
	name  bytea NOT NULL,
	UNIQUE (trial, name)
);
CREATE TABLE attempt (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	trial   bigint NOT NULL REFERENCES trial,
	name    bytea NOT NULL,
	started bigint,                -- Unix nanoseconds; NULL: not known
	final   boolean NOT NULL DEFAULT false,
	note    bytea NOT NULL DEFAULT '',
	UNIQUE (trial, name)
);
CREATE TABLE source (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	attempt bigint NOT NULL REFERENCES attempt,
	name    bytea NOT NULL,
	acked   bigint NOT NULL,       -- largest seq stored, plus one
	UNIQUE (attempt, name)
);
CREATE TABLE point (
	source bigint NOT NULL,
	seq    bigint NOT NULL,
	metric bigint NOT NULL,
	step   bigint NOT NULL,
	time   bigint,                 -- Unix nanoseconds; NULL: not known
	value  double precision NOT NULL,
	text   bytea,                  -- as written, when not the shortest form
	PRIMARY KEY (source, seq)
);
