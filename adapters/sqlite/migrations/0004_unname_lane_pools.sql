-- Which pool serves a lane follows from the configuration in force, so its key no longer names one.
UPDATE lanes SET key = json_remove(key, '$.pool');
