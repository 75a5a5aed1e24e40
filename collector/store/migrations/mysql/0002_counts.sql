-- How many points of a source are stored, and the size of their texts, so that a
-- quota needs no counting. A column that is there already is passed over.
ALTER TABLE source ADD COLUMN points BIGINT NOT NULL DEFAULT 0;
ALTER TABLE source ADD COLUMN text_bytes BIGINT NOT NULL DEFAULT 0;
UPDATE source SET points = (SELECT count(*) FROM point WHERE point.source = source.id),
	text_bytes = (SELECT coalesce(sum(length(text)), 0) FROM point WHERE point.source = source.id);
