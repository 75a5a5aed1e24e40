-- How many points of a source are stored, and the size of their texts, so that a
-- quota needs no counting.
ALTER TABLE source ADD COLUMN points INTEGER NOT NULL DEFAULT 0;
ALTER TABLE source ADD COLUMN text_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE source SET (points, text_bytes) =
	(SELECT count(*), coalesce(sum(length(CAST(text AS BLOB))), 0) FROM point WHERE point.source = source.id);
