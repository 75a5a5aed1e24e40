-- How many points a trial had when its curves were thinned.
ALTER TABLE trial ADD COLUMN thinned BIGINT NOT NULL DEFAULT 0;
