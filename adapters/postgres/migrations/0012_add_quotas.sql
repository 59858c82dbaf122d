-- Quotas are in force like policies, pools and timeouts.
INSERT INTO in_force (kind, version, id) VALUES ('quotas', 0, 'builtin:quotas');
