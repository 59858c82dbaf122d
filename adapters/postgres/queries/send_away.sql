UPDATE sessions SET sent_away_at = COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
WHERE session = ANY($2::text[]) AND closed_at IS NULL
RETURNING epoch
