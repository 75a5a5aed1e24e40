-- The experiment of a trial, and when it reported last. Trials that are there get
-- the experiment that their name tells of, <experiment>-<at least four digits>, and
-- count as having reported today.
ALTER TABLE trial ADD COLUMN experiment TEXT NOT NULL DEFAULT '';
ALTER TABLE trial ADD COLUMN touched INTEGER NOT NULL DEFAULT 0; -- Unix seconds
UPDATE trial SET touched = unixepoch();
UPDATE trial SET experiment = substr(name, 1, length(rtrim(name, '0123456789')) - 1)
	WHERE name GLOB '?*-[0-9][0-9][0-9][0-9]*'
	AND substr(name, length(rtrim(name, '0123456789')), 1) = '-'
	AND length(name) - length(rtrim(name, '0123456789')) >= 4;
CREATE INDEX trial_experiment ON trial (namespace, experiment);
