UPDATE leases SET holder = NULL WHERE name = $1 AND holder = $2
