-- Names are compared byte by byte, whatever language the database speaks.
ALTER TABLE dags ALTER COLUMN name TYPE TEXT COLLATE "C";
ALTER TABLE runs ALTER COLUMN run_id TYPE TEXT COLLATE "C", ALTER COLUMN parent TYPE TEXT COLLATE "C";
ALTER TABLE run_nodes ALTER COLUMN run_id TYPE TEXT COLLATE "C";
ALTER TABLE run_jobs ALTER COLUMN job_id TYPE TEXT COLLATE "C", ALTER COLUMN run_id TYPE TEXT COLLATE "C";
ALTER TABLE run_keys ALTER COLUMN run_id TYPE TEXT COLLATE "C";
ALTER TABLE run_news
    ALTER COLUMN run_id TYPE TEXT COLLATE "C",
    ALTER COLUMN job_id TYPE TEXT COLLATE "C",
    ALTER COLUMN child TYPE TEXT COLLATE "C";

-- Rows that go as soon as they were heard: dead ones are swept before they slow the reading of the rest.
ALTER TABLE run_news SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
