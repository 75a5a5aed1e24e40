-- How many points of a source are stored, and the size of their texts, so that a
-- quota needs no counting.
ALTER TABLE source ADD COLUMN points bigint NOT NULL DEFAULT 0;
ALTER TABLE source ADD COLUMN text_bytes bigint NOT NULL DEFAULT 0;
UPDATE source SET (points, text_bytes) =
	(SELECT count(*), coalesce(sum(length(text)), 0) FROM point WHERE point.source = source.id);
