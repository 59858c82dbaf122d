-- Numbers are given in the order of the changes, to those whose id is free.
, registered AS (
    INSERT INTO job_ids (job_id)
    SELECT i.job_id
    FROM unnest($10::bigint[], $11::text[]) AS i(proof, job_id)
    WHERE (SELECT holds FROM proof)[i.proof]
        AND NOT EXISTS (SELECT 1 FROM jobs_hot WHERE jobs_hot.job_id = i.job_id)
        AND NOT EXISTS (SELECT 1 FROM jobs_done WHERE jobs_done.job_id = i.job_id)
    ON CONFLICT (job_id) DO NOTHING
    RETURNING job_id, nextval('job_seq') AS seq
)
SELECT job_id, seq FROM registered
