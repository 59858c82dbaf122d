, untold AS (
    DELETE FROM outbox USING gone WHERE outbox.job_id = gone.job_id
)
