-- Waits for every open transaction that commits changes, and makes those that waited meanwhile look again.
UPDATE totals SET fences = fences + 1
