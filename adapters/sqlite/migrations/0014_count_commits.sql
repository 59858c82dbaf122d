-- Transactions are counted in the database; the commit mark beside it says how far acknowledged ones went (ADR 21).
ALTER TABLE book ADD COLUMN installation BLOB NOT NULL DEFAULT x'';
ALTER TABLE book ADD COLUMN commits INTEGER NOT NULL DEFAULT 0;
-- What was missing when an operator accepted a loss, until a new timeline has begun.
ALTER TABLE book ADD COLUMN accepted_loss TEXT;
UPDATE book SET installation = randomblob(16);
