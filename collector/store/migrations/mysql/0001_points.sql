-- Names are kept once and points refer to them by number. Names and texts are
-- bytes: they may hold anything, and no collation makes two of them one, neither
-- by case nor by trailing blanks. The primary key of point is the identity of a
-- point and the order in which rows lie, which is that in which one trial's curves
-- are read. Statements here may run again after a crash: MySQL commits each.
CREATE TABLE IF NOT EXISTS trial (
	id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	uid        VARBINARY(512) NOT NULL UNIQUE,
	namespace  VARBINARY(512) NOT NULL,
	name       VARBINARY(512) NOT NULL,
	experiment VARBINARY(512) NOT NULL,
	touched    BIGINT NOT NULL,    -- Unix seconds of the last report, an hour late at most
	INDEX trial_experiment (namespace, experiment)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
CREATE TABLE IF NOT EXISTS metric (
	id    BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	trial BIGINT NOT NULL,
	name  VARBINARY(2048) NOT NULL,
	UNIQUE (trial, name),
	FOREIGN KEY (trial) REFERENCES trial (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
CREATE TABLE IF NOT EXISTS attempt (
	id      BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	trial   BIGINT NOT NULL,
	name    VARBINARY(512) NOT NULL,
	started BIGINT,                -- Unix nanoseconds; NULL: not known
	final   BOOLEAN NOT NULL DEFAULT FALSE,
	note    VARBINARY(16384) NOT NULL DEFAULT '',
	UNIQUE (trial, name),
	FOREIGN KEY (trial) REFERENCES trial (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
CREATE TABLE IF NOT EXISTS source (
	id      BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	attempt BIGINT NOT NULL,
	name    VARBINARY(2048) NOT NULL,
	acked   BIGINT NOT NULL,       -- largest seq stored, plus one
	UNIQUE (attempt, name),
	FOREIGN KEY (attempt) REFERENCES attempt (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
CREATE TABLE IF NOT EXISTS point (
	source  BIGINT NOT NULL,
	seq     BIGINT NOT NULL,
	metric  BIGINT NOT NULL,
	step    BIGINT NOT NULL,
	time    BIGINT,                -- Unix nanoseconds; NULL: not known
	value   DOUBLE,                -- NULL: what DOUBLE cannot hold, see special
	special TINYINT,               -- where value is NULL: NULL is NaN, 1 and -1 the infinities; 0 where value is -0
	text    BLOB,                  -- as written, when not the shortest form
	PRIMARY KEY (source, seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
