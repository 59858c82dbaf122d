BEGIN TRANSACTION;
CREATE TABLE activations (
    kind TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    id TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (kind, version)
) STRICT, WITHOUT ROWID;
INSERT INTO "activations" VALUES('policy',1,'sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4','policy-file',1794885915663);
CREATE TABLE audit (
    audit_id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
INSERT INTO "audit" VALUES(1,1794885915651,'default','policy-file','policy_activated','sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4','{"file":"fx/policy.yaml"}');
INSERT INTO "audit" VALUES(2,1794885915744,'default','admin','credential_created','0000000000000000','{"actor":"admin","ends_at_ms":null,"everyone":true,"roles":["viewer","submitter","approver","operator","admin"],"via":null}');
INSERT INTO "audit" VALUES(3,1794885920400,'default','lockgate','approval_asked','ask','{"request_hash":"53686dc7dadbc266834ef3381d82f63970bc835195b636ee4614d804233b2ccc","topic":"job.echo","submitter":"admin","event":{"n":2,"at":1794885920400,"kind":"approval_required","attempt":1,"message":"money moves","rule":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#ask"}}');
INSERT INTO "audit" VALUES(4,1794885920460,'default','lockgate','job_denied','denied','{"request_hash":"31d153c790fa636a74ff45efeca738bf3d5cde9a1325fec77a816ced94dc0109","topic":"job.forbidden","submitter":"admin","event":{"n":2,"at":1794885920460,"kind":"denied","attempt":1,"reason":"denied","message":"never","rule":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#never"}}');
INSERT INTO "audit" VALUES(5,1794885920587,'default','lockgate','output_quarantined','card','{"request_hash":"e64a0939996793e4548a25b57173f2b171e0fd8b90c2c01b700134b9bb38f53e","topic":"job.echo","submitter":"admin","event":{"n":5,"at":1794885920587,"kind":"output_quarantined","attempt":1,"reason":"output_quarantined","message":"a card (1 finding)","rule":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#cards"}}');
INSERT INTO "audit" VALUES(6,1794885920731,'default','admin','job_cancelled','gone','{"request_hash":"fc3caceec88e0c8304028156d4d8e50c87722330723408f70067ba5fcba578ab","topic":"job.noop","submitter":"admin","event":{"n":3,"at":1794885920731,"kind":"cancelled","attempt":1,"reason":"cancelled","message":"cancelled by admin","actor":"admin"}}');
INSERT INTO "audit" VALUES(7,1794885920959,'default','admin','job_replayed','again','{"request_hash":"2eaaa99a1066a77a4f4d1b41f111248ff519c5342f35735c10724c9e1545629e","topic":"job.always_fail","submitter":"admin","event":{"n":5,"at":1794885920959,"kind":"replayed","attempt":1,"actor":"admin"}}');
INSERT INTO "audit" VALUES(8,1794885921128,'default','admin','dag_stored','bad','{"snapshot":"dag:deb947e7368f642a3906b7ba7c892620af3293fe3092bb2a549c53c165e14c8a"}');
INSERT INTO "audit" VALUES(9,1794885921203,'default','admin','run_started','run-01a1e789-a9b3-7034-afcc-b64aa30e6844','{"dag":"bad","version":1}');
INSERT INTO "audit" VALUES(10,1794885921599,'default','admin','schedule_stored','nightly','{"content":"schedule:514cb845b9f9a98c56484ce09edc374bea88cfb00332cf036641b14bede9bd01","revision":1}');
INSERT INTO "audit" VALUES(11,1794885921599,'default','admin','schedule_stored','often','{"content":"schedule:44be457d37892790d9abdacec85b0c4315b2b5acc47afa811a88a0ed3643899c","revision":1}');
INSERT INTO "audit" VALUES(12,1794885924678,'default','admin','schedule_paused','often','null');
INSERT INTO "audit" VALUES(13,1794885924745,'acme','admin','credential_created','bd1da7b3f2806c14','{"actor":"ci","ends_at_ms":null,"everyone":false,"roles":["submitter"],"via":"0000000000000000"}');
INSERT INTO "audit" VALUES(14,1794885943498,'default','admin','dag_stored','saga','{"snapshot":"dag:73b87842bd97e29e5044bdf024a5cdceae70b78bbe6bea52d209961f16954799"}');
INSERT INTO "audit" VALUES(15,1794885943625,'default','admin','run_started','run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f','{"dag":"saga","version":1}');
CREATE TABLE audit_blocks (
    block_no INTEGER PRIMARY KEY CHECK (block_no > 0),
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL CHECK (last_id >= first_id),
    rows INTEGER NOT NULL CHECK (rows > 0),
    previous BLOB NOT NULL CHECK (length(previous) = 32),
    seal BLOB NOT NULL CHECK (length(seal) = 32),
    sealed_at INTEGER NOT NULL
) STRICT;
INSERT INTO "audit_blocks" VALUES(1,1,2,2,X'0000000000000000000000000000000000000000000000000000000000000000',X'DF07A9522C20A31170D2158025071FB5F34B11C6A1EAB4C2ECE0F268B68C4CBC',1794885916896);
INSERT INTO "audit_blocks" VALUES(2,3,6,4,X'DF07A9522C20A31170D2158025071FB5F34B11C6A1EAB4C2ECE0F268B68C4CBC',X'38DF5B498FD58BB956DEE46A11E43377145D46094B854E9EB12831A629C38633',1794885920942);
INSERT INTO "audit_blocks" VALUES(3,7,11,5,X'38DF5B498FD58BB956DEE46A11E43377145D46094B854E9EB12831A629C38633',X'97826563ED7778FE1FB2B7045E69E940FA7D3E0E3B6CFE34AFBFA683723D43C3',1794885921976);
INSERT INTO "audit_blocks" VALUES(4,12,13,2,X'97826563ED7778FE1FB2B7045E69E940FA7D3E0E3B6CFE34AFBFA683723D43C3',X'007DE0DDA01CD833621BB7C13BF11F43013D93E8F9585F81E96745E9EBE9ECF4',1794885925043);
INSERT INTO "audit_blocks" VALUES(5,14,14,1,X'007DE0DDA01CD833621BB7C13BF11F43013D93E8F9585F81E96745E9EBE9ECF4',X'9F6D1721DDB8116283E576A8957759A1793FB865A5E46C971D8EDF59EF31A342',1794885943598);
INSERT INTO "audit_blocks" VALUES(6,15,15,1,X'9F6D1721DDB8116283E576A8957759A1793FB865A5E46C971D8EDF59EF31A342',X'25424CE3243F937CCF71CBAAEDB7CF6695E8ADBD9F58976B27473282696CB402',1794885944615);
CREATE TABLE blanks (
    n INTEGER PRIMARY KEY,
    zeros BLOB NOT NULL
) STRICT;
CREATE TABLE book (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    last_seq INTEGER NOT NULL,
    live_critical INTEGER NOT NULL CHECK (live_critical >= 0),
    live_high INTEGER NOT NULL CHECK (live_high >= 0),
    live_default INTEGER NOT NULL CHECK (live_default >= 0),
    live_low INTEGER NOT NULL CHECK (live_low >= 0),
    dead_critical INTEGER NOT NULL CHECK (dead_critical >= 0),
    dead_high INTEGER NOT NULL CHECK (dead_high >= 0),
    dead_default INTEGER NOT NULL CHECK (dead_default >= 0),
    dead_low INTEGER NOT NULL CHECK (dead_low >= 0),
    ended INTEGER NOT NULL CHECK (ended >= 0)
) STRICT;
INSERT INTO "book" VALUES(1,19,0,1,2,0,0,0,5,0,16);
CREATE TABLE credentials (
    id TEXT PRIMARY KEY,
    ends_at INTEGER,
    body TEXT NOT NULL
) STRICT;
INSERT INTO "credentials" VALUES('0000000000000000',NULL,'{"id":"0000000000000000","kind":{"key":{"digest":[39,87,7,153,131,95,176,119,83,192,230,86,141,247,102,182,129,234,166,89,51,137,206,55,235,137,116,21,6,250,46,140]}},"actor":"admin","grant":{"reach":"everyone","roles":["viewer","submitter","approver","operator","admin"],"payloads":true},"created_at":1794885915744,"created_by":"admin"}');
INSERT INTO "credentials" VALUES('bd1da7b3f2806c14',NULL,'{"id":"bd1da7b3f2806c14","kind":{"key":{"digest":[145,81,45,111,203,24,62,226,112,244,153,249,103,178,204,212,47,48,238,121,231,224,159,118,68,133,13,105,124,119,238,26]}},"actor":"ci","grant":{"reach":{"tenant":"acme"},"roles":["submitter"],"payloads":false},"created_at":1794885924745,"created_by":"admin"}');
CREATE TABLE dags (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    snapshot TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    pins TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (tenant, name, version)
) STRICT;
INSERT INTO "dags" VALUES('default','bad',1,'dag:deb947e7368f642a3906b7ba7c892620af3293fe3092bb2a549c53c165e14c8a','admin',1794885921128,'{}','version: 1
dag: bad
nodes:
  one: {topic: job.echo, payload: 1, compensation: {topic: job.echo, payload: 1}}
  two: {needs: one, topic: job.always_fail, max_attempts: 1, on_fail: compensate}
');
INSERT INTO "dags" VALUES('default','saga',1,'dag:73b87842bd97e29e5044bdf024a5cdceae70b78bbe6bea52d209961f16954799','admin',1794885943519,'{}','version: 1
dag: saga
params: {n: {type: number, default: 1}}
nodes:
  one: {topic: job.echo, payload: "${params.n}", compensation: {topic: job.echo, payload: 1}}
  many: {needs: one, for_each: ''[1, 2]'', topic: job.echo, payload: "${item}"}
  rest: {needs: many, delay: 24h}
');
CREATE TABLE dead_letters (
    letter_id INTEGER PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    topic TEXT NOT NULL,
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 3),
    reason TEXT NOT NULL,
    letter TEXT NOT NULL
) STRICT;
INSERT INTO "dead_letters" VALUES(1,3,'default','job.always_fail',2,'failed','{"job_id":"dead","tenant":"default","topic":"job.always_fail","priority":"default","state":"FAILED","reason":"failed","message":"this job always fails","attempts":1,"life":1,"at":1794885920129}');
INSERT INTO "dead_letters" VALUES(2,6,'default','job.forbidden',2,'denied','{"job_id":"denied","tenant":"default","topic":"job.forbidden","priority":"default","state":"DENIED","reason":"denied","message":"never","attempts":0,"life":1,"at":1794885920460}');
INSERT INTO "dead_letters" VALUES(3,7,'default','job.echo',2,'output_quarantined','{"job_id":"card","tenant":"default","topic":"job.echo","priority":"default","state":"OUTPUT_QUARANTINED","reason":"output_quarantined","message":"a card","attempts":1,"life":1,"at":1794885920587}');
INSERT INTO "dead_letters" VALUES(5,10,'default','job.always_fail',2,'failed','{"job_id":"again","tenant":"default","topic":"job.always_fail","priority":"default","state":"FAILED","reason":"failed","message":"this job always fails","attempts":2,"life":2,"at":1794885920992}');
INSERT INTO "dead_letters" VALUES(6,12,'default','job.always_fail',2,'failed','{"job_id":"run-01a1e789-a9b3-7034-afcc-b64aa30e6844.1~0","tenant":"default","topic":"job.always_fail","priority":"default","state":"FAILED","reason":"failed","message":"this job always fails","attempts":1,"life":1,"at":1794885921340,"labels":{"workflow_id":"bad"}}');
CREATE TABLE duties (
    kind TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (kind, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO "duties" VALUES('approve',5);
CREATE TABLE edges (
    edge TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    closed_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO "edges" VALUES('01a1e789-92b8-7a05-a8cf-60d2a5d74097',1794885931967,NULL);
INSERT INTO "edges" VALUES('01a1e789-f8de-78f2-99a4-7f58f4ed782a',1794885951603,NULL);
CREATE TABLE held_results (
    seq INTEGER PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;
CREATE TABLE idempotency (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    seq INTEGER NOT NULL,
    free_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
INSERT INTO "idempotency" VALUES('default','k1',1,1795490718069);
CREATE TABLE job_logs (
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (seq, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    topic TEXT NOT NULL,
    hash BLOB NOT NULL,
    request TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;
INSERT INTO "jobs" VALUES(1,'good','default','job.echo',X'8BDB97A08E71C7964F05DD02F0C7E9FCBE10473EE3802768350ECB6671743BAC','{"job_id":"good","id_chosen":true,"tenant":"default","actor":"admin","topic":"job.echo","labels":{"x":"y"},"idempotency_key":"k1","trace_id":"order-7"}','{"a":1}');
INSERT INTO "jobs" VALUES(2,'flaky','default','job.flaky',X'9A0A1846E97E94E360F8AEFA378DBEF1AB2B6773AC1464E2F38B3873A1136226','{"job_id":"flaky","id_chosen":true,"tenant":"default","actor":"admin","topic":"job.flaky"}','1');
INSERT INTO "jobs" VALUES(3,'dead','default','job.always_fail',X'D06C549D196389A824683CC697FF3B3E8FE607FD4B93923299D4BDB455BAF542','{"job_id":"dead","id_chosen":true,"tenant":"default","actor":"admin","topic":"job.always_fail","max_attempts":1}','null');
INSERT INTO "jobs" VALUES(4,'later','default','job.noop',X'A9D863FCEFDF19AA8ABABB5A60C2B73E4D875E0B1A85E81165C8ACE8655C27F8','{"job_id":"later","id_chosen":true,"tenant":"default","actor":"admin","topic":"job.noop","not_before":1794972320260}','null');
INSERT INTO "jobs" VALUES(5,'ask','default','job.echo',X'53686DC7DADBC266834EF3381D82F63970BC835195B636EE4614D804233B2CCC','{"job_id":"ask","id_chosen":true,"tenant":"default","actor":"admin","topic":"job.echo","labels":{"team":"payments"}}','null');
INSERT INTO "jobs" VALUES(6,'denied','default','job.forbidden',X'31D153C790FA636A74FF45EFECA738BF3D5CDE9A1325FEC77A816CED94DC0109','{"job_id":"denied","id_chosen":true,"tenant":"default","actor":"admin","topic":"job.forbidden"}','null');
INSERT INTO "jobs" VALUES(7,'card','default','job.echo',X'E64A0939996793E4548A25B57173F2B171E0FD8B90C2C01B700134B9BB38F53E','{"job_id":"card","id_chosen":true,"tenant":"default","actor":"admin","topic":"job.echo"}','"4111 1111 1111 1111"');
INSERT INTO "jobs" VALUES(8,'nobody','default','job.echo',X'F10288C31FAFC3AE077B4ECDC191BE6B551957E7753AE81B9E0D024C6D5696DB','{"job_id":"nobody","id_chosen":true,"tenant":"default","actor":"admin","topic":"job.echo","priority":"high","requires":["gpu"]}','null');
INSERT INTO "jobs" VALUES(9,'gone','default','job.noop',X'FC3CACEEC88E0C8304028156D4D8E50C87722330723408F70067BA5FCBA578AB','{"job_id":"gone","id_chosen":true,"tenant":"default","actor":"admin","topic":"job.noop","not_before":1794972320626}','null');
INSERT INTO "jobs" VALUES(10,'again','default','job.always_fail',X'2EAAA99A1066A77A4F4D1B41F111248FF519C5342F35735C10724C9E1545629E','{"job_id":"again","id_chosen":true,"tenant":"default","actor":"admin","topic":"job.always_fail","max_attempts":1}','null');
INSERT INTO "jobs" VALUES(11,'run-01a1e789-a9b3-7034-afcc-b64aa30e6844.0~0','default','job.echo',X'0AB792D873CD3E2A6E6B552E961010E5B80E89B434DAE170F54351A07B4698A1','{"job_id":"run-01a1e789-a9b3-7034-afcc-b64aa30e6844.0~0","tenant":"default","actor":"admin","topic":"job.echo","labels":{"workflow_id":"bad"},"run":{"run":"run-01a1e789-a9b3-7034-afcc-b64aa30e6844","node":0,"round":0}}','1');
INSERT INTO "jobs" VALUES(12,'run-01a1e789-a9b3-7034-afcc-b64aa30e6844.1~0','default','job.always_fail',X'B91CCB05297F27C89A1433BBC533AF0BD7403DEAE85F416A14A8DC05C0614CFA','{"job_id":"run-01a1e789-a9b3-7034-afcc-b64aa30e6844.1~0","tenant":"default","actor":"admin","topic":"job.always_fail","labels":{"workflow_id":"bad"},"max_attempts":1,"run":{"run":"run-01a1e789-a9b3-7034-afcc-b64aa30e6844","node":1,"round":0}}','null');
INSERT INTO "jobs" VALUES(13,'comp-668e8443-9961-86dd-a0f8-178226060644~0','default','job.echo',X'3547693804CB24255A5A287CD59499A3D600309ABF7AE0CCB3A08AD585D19868','{"job_id":"comp-668e8443-9961-86dd-a0f8-178226060644~0","tenant":"default","actor":"admin","topic":"job.echo","priority":"critical","labels":{"is_compensation":"true","saga_compensation":"true","saga_workflow_id":"run-01a1e789-a9b3-7034-afcc-b64aa30e6844","workflow_id":"bad"},"env":{"saga_compensation":"true","saga_workflow_id":"run-01a1e789-a9b3-7034-afcc-b64aa30e6844"},"run":{"run":"run-01a1e789-a9b3-7034-afcc-b64aa30e6844","node":0,"round":0,"undo":true}}','1');
INSERT INTO "jobs" VALUES(14,'cron-045c8403-1978-8da5-bea4-890432487441','default','job.noop',X'BD4D6F60C4CC78318F1792CA319D8058FC28EA457666D099D5A9F004E2139FFD','{"job_id":"cron-045c8403-1978-8da5-bea4-890432487441","tenant":"default","actor":"admin","topic":"job.noop"}','null');
INSERT INTO "jobs" VALUES(15,'cron-fbd7044b-b774-8f71-93b5-4c67ad073fbf','default','job.noop',X'BD4D6F60C4CC78318F1792CA319D8058FC28EA457666D099D5A9F004E2139FFD','{"job_id":"cron-fbd7044b-b774-8f71-93b5-4c67ad073fbf","tenant":"default","actor":"admin","topic":"job.noop"}','null');
INSERT INTO "jobs" VALUES(16,'cron-35714955-af2d-8db9-be6a-5f1b9eaed038','default','job.noop',X'BD4D6F60C4CC78318F1792CA319D8058FC28EA457666D099D5A9F004E2139FFD','{"job_id":"cron-35714955-af2d-8db9-be6a-5f1b9eaed038","tenant":"default","actor":"admin","topic":"job.noop"}','null');
INSERT INTO "jobs" VALUES(17,'run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f.0~0','default','job.echo',X'43B73F5110D93DF5FFDDAB402DF1751196C3B291CBFB4564A8B1328D0FC38581','{"job_id":"run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f.0~0","tenant":"default","actor":"admin","topic":"job.echo","labels":{"workflow_id":"saga"},"run":{"run":"run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f","node":0,"round":0}}','3');
INSERT INTO "jobs" VALUES(18,'run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f.1.0~0','default','job.echo',X'761CFCE63137EB10382828611DEA61B4EEA837381A8CE4045430AD9F61C8CAD9','{"job_id":"run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f.1.0~0","tenant":"default","actor":"admin","topic":"job.echo","labels":{"workflow_id":"saga"},"run":{"run":"run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f","node":1,"item":0,"round":0}}','1');
INSERT INTO "jobs" VALUES(19,'run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f.1.1~0','default','job.echo',X'364C0038945F61873BA62DBC87C085118B6AF357085A40F969E3BC717009FE3E','{"job_id":"run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f.1.1~0","tenant":"default","actor":"admin","topic":"job.echo","labels":{"workflow_id":"saga"},"run":{"run":"run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f","node":1,"item":1,"round":0}}','2');
CREATE TABLE jobs_done (
    seq INTEGER PRIMARY KEY,
    version INTEGER NOT NULL CHECK (version > 0),
    state INTEGER NOT NULL CHECK (state BETWEEN 5 AND 10),
    ended_at INTEGER NOT NULL,
    life TEXT NOT NULL,
    events TEXT NOT NULL,
    result TEXT
) STRICT;
INSERT INTO "jobs_done" VALUES(1,4,5,1794885918104,'{"n":1,"a":{"n":1,"t":"b2268b3b9770b4b8260ad95de06efd4c","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-929f-7832-81fd-48c2a5c18a4b","w":"built-in","d":11,"t":300011,"b":120011,"a":1}},"s":1794885918069,"z":35,"o":{"attempt":1,"stage":"checked","verdict":{"decision":"allow","rule":"default","reason":"no output rule matched","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"e":5}','{"n":1,"t":1794885918069,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885918069,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885918080,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885918080,"k":"output_held","a":1}
{"n":5,"t":1794885918104,"k":"succeeded","a":1}
','{"a":1}');
INSERT INTO "jobs_done" VALUES(2,6,5,1794885919964,'{"n":1,"a":{"n":2,"t":"20ac218fb40602854c1cb01ae47f50b8","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-929f-7832-81fd-48c2a5c18a4b","w":"built-in","d":1794,"t":301794,"b":121794,"a":3}},"c":{"f":1},"s":1794885918146,"d":1371,"z":1818,"f":{"reason":"failed","message":"attempt 1 of 1 that fail"},"o":{"attempt":2,"stage":"checked","verdict":{"decision":"allow","rule":"default","reason":"no output rule matched","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"e":8}','{"n":1,"t":1794885918146,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885918146,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885918147,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885918149,"k":"attempt_failed","a":1,"r":"failed","m":"attempt 1 of 1 that fail","u":1794885919517}
{"n":5,"t":1794885918149,"k":"scheduled","a":2,"u":1794885919517,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":6,"t":1794885919940,"k":"dispatched","a":2,"w":"built-in"}
{"n":7,"t":1794885919952,"k":"output_held","a":2}
{"n":8,"t":1794885919964,"k":"succeeded","a":2}
','{"attempt":2}');
INSERT INTO "jobs_done" VALUES(3,3,6,1794885920129,'{"n":1,"a":{"n":1,"t":"6327fc9dbac3789335db44b7f37d79d6","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-929f-7832-81fd-48c2a5c18a4b","w":"built-in","d":61,"t":300061,"b":120061,"a":4}},"c":{"f":1},"s":1794885920064,"z":65,"f":{"reason":"failed","message":"this job always fails"},"e":4}','{"n":1,"t":1794885920064,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885920064,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885920125,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885920129,"k":"failed","a":1,"r":"failed","m":"this job always fails"}
',NULL);
INSERT INTO "jobs_done" VALUES(6,1,9,1794885920460,'{"n":1,"a":{"n":1,"t":"f43cb5a5e71698dee2c58670b2aef591","v":{"decision":"deny","rule":"never","reason":"never","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"s":1794885920460,"z":0,"f":{"reason":"denied","message":"never"},"e":2}','{"n":1,"t":1794885920460,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885920460,"k":"denied","a":1,"r":"denied","m":"never","p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#never"}
',NULL);
INSERT INTO "jobs_done" VALUES(7,4,10,1794885920587,'{"n":1,"a":{"n":1,"t":"09730aa4dbd031b19ee62a8c2a7df809","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-929f-7832-81fd-48c2a5c18a4b","w":"built-in","d":26,"t":300026,"b":120026,"a":5}},"s":1794885920506,"z":81,"f":{"reason":"output_quarantined","message":"a card"},"o":{"attempt":1,"stage":"checked","verdict":{"decision":"quarantine","rule":"cards","reason":"a card","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4","findings":[{"kind":"pii","rule":"credit_card","offset":1,"length":19,"hash":"3b90bc4bcf7a0cce16dd280a780f179b"}]}},"e":5}','{"n":1,"t":1794885920506,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885920506,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885920532,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885920544,"k":"output_held","a":1}
{"n":5,"t":1794885920587,"k":"output_quarantined","a":1,"r":"output_quarantined","m":"a card (1 finding)","p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#cards"}
','"4111 1111 1111 1111"');
INSERT INTO "jobs_done" VALUES(9,2,8,1794885920731,'{"n":1,"a":{"n":1,"t":"a405efb1112d35508d926cf473db7a38","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"s":1794885920640,"d":86399986,"z":91,"f":{"reason":"cancelled","message":"cancelled by admin"},"e":3}','{"n":1,"t":1794885920640,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885920640,"k":"scheduled","a":1,"u":1794972320626,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885920731,"k":"cancelled","a":1,"r":"cancelled","m":"cancelled by admin","c":"admin"}
',NULL);
INSERT INTO "jobs_done" VALUES(10,6,6,1794885920992,'{"n":2,"a":{"n":2,"t":"1353568c9f75627621290ff2d9c9b644","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-929f-7832-81fd-48c2a5c18a4b","w":"built-in","d":88,"t":300088,"b":120088,"a":7}},"c":{"f":1},"s":1794885920892,"b":67,"d":67,"z":100,"f":{"reason":"failed","message":"this job always fails"},"e":8}','{"n":1,"t":1794885920892,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885920892,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885920904,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885920928,"k":"failed","a":1,"r":"failed","m":"this job always fails"}
{"n":5,"t":1794885920959,"k":"replayed","a":1,"c":"admin"}
{"n":6,"t":1794885920959,"k":"scheduled","a":2,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":7,"t":1794885920980,"k":"dispatched","a":2,"w":"built-in"}
{"n":8,"t":1794885920992,"k":"failed","a":2,"r":"failed","m":"this job always fails"}
',NULL);
INSERT INTO "jobs_done" VALUES(11,4,5,1794885921276,'{"n":1,"a":{"n":1,"t":"143fa14ba025e90d49b2f1d6c3803d06","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-929f-7832-81fd-48c2a5c18a4b","w":"built-in","d":13,"t":300013,"b":120013,"a":8}},"s":1794885921203,"z":73,"o":{"attempt":1,"stage":"checked","verdict":{"decision":"allow","rule":"default","reason":"no output rule matched","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"e":5}','{"n":1,"t":1794885921203,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885921203,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885921216,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885921237,"k":"output_held","a":1}
{"n":5,"t":1794885921276,"k":"succeeded","a":1}
','1');
INSERT INTO "jobs_done" VALUES(12,3,6,1794885921340,'{"n":1,"a":{"n":1,"t":"72610ec0773ca8dcd52317f4816595c6","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-929f-7832-81fd-48c2a5c18a4b","w":"built-in","d":12,"t":300012,"b":120012,"a":9}},"c":{"f":1},"s":1794885921300,"z":40,"f":{"reason":"failed","message":"this job always fails"},"e":4}','{"n":1,"t":1794885921300,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885921300,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885921312,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885921340,"k":"failed","a":1,"r":"failed","m":"this job always fails"}
',NULL);
INSERT INTO "jobs_done" VALUES(13,4,5,1794885921488,'{"n":1,"a":{"n":1,"t":"4b583dcf39160778d6c46ca9ac825374","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-929f-7832-81fd-48c2a5c18a4b","w":"built-in","d":49,"t":300049,"b":120049,"a":10}},"s":1794885921387,"z":101,"o":{"attempt":1,"stage":"checked","verdict":{"decision":"allow","rule":"default","reason":"no output rule matched","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"e":5}','{"n":1,"t":1794885921387,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885921387,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885921436,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885921460,"k":"output_held","a":1}
{"n":5,"t":1794885921488,"k":"succeeded","a":1}
','1');
INSERT INTO "jobs_done" VALUES(14,4,5,1794885922150,'{"n":1,"a":{"n":1,"t":"3ec7536bb0fd61ac38a3f7392bacce9a","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-929f-7832-81fd-48c2a5c18a4b","w":"built-in","d":52,"t":300052,"b":120052,"a":11}},"s":1794885922051,"z":99,"o":{"attempt":1,"stage":"checked","verdict":{"decision":"allow","rule":"default","reason":"no output rule matched","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"e":5}','{"n":1,"t":1794885922051,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885922051,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885922103,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885922133,"k":"output_held","a":1}
{"n":5,"t":1794885922150,"k":"succeeded","a":1}
','null');
INSERT INTO "jobs_done" VALUES(15,4,5,1794885923072,'{"n":1,"a":{"n":1,"t":"a72f4523e2701b0e96dfd58210800522","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-929f-7832-81fd-48c2a5c18a4b","w":"built-in","d":0,"t":300000,"b":120000,"a":12}},"s":1794885923060,"z":12,"o":{"attempt":1,"stage":"checked","verdict":{"decision":"allow","rule":"default","reason":"no output rule matched","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"e":5}','{"n":1,"t":1794885923060,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885923060,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885923060,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885923068,"k":"output_held","a":1}
{"n":5,"t":1794885923072,"k":"succeeded","a":1}
','null');
INSERT INTO "jobs_done" VALUES(16,4,5,1794885924005,'{"n":1,"a":{"n":1,"t":"ecb6409d4ecd880d2af7050db5d87f11","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-929f-7832-81fd-48c2a5c18a4b","w":"built-in","d":0,"t":300000,"b":120000,"a":13}},"s":1794885924003,"z":2,"o":{"attempt":1,"stage":"checked","verdict":{"decision":"allow","rule":"default","reason":"no output rule matched","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"e":5}','{"n":1,"t":1794885924003,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885924003,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885924003,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885924004,"k":"output_held","a":1}
{"n":5,"t":1794885924005,"k":"succeeded","a":1}
','null');
INSERT INTO "jobs_done" VALUES(17,4,5,1794885943644,'{"n":1,"a":{"n":1,"t":"35b36d168289bd436f82badb49dedf70","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-f8dd-76e0-8353-6b4ea2eb2a10","w":"built-in","d":7,"t":300007,"b":120007,"a":1}},"s":1794885943625,"z":19,"o":{"attempt":1,"stage":"checked","verdict":{"decision":"allow","rule":"default","reason":"no output rule matched","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"e":5}','{"n":1,"t":1794885943625,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885943625,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885943632,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885943636,"k":"output_held","a":1}
{"n":5,"t":1794885943644,"k":"succeeded","a":1}
','3');
INSERT INTO "jobs_done" VALUES(18,4,5,1794885943724,'{"n":1,"a":{"n":1,"t":"5d3c7fd9fec335a1cccd8656e5d39bbb","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-f8dd-76e0-8353-6b4ea2eb2a10","w":"built-in","d":27,"t":300027,"b":120027,"a":2}},"s":1794885943656,"z":68,"o":{"attempt":1,"stage":"checked","verdict":{"decision":"allow","rule":"default","reason":"no output rule matched","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"e":5}','{"n":1,"t":1794885943656,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885943656,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885943683,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885943704,"k":"output_held","a":1}
{"n":5,"t":1794885943724,"k":"succeeded","a":1}
','1');
INSERT INTO "jobs_done" VALUES(19,4,5,1794885943724,'{"n":1,"a":{"n":1,"t":"f22f6af936a3b5f9c1e1b5ef5140795b","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"},"b":{"s":"01a1e789-f8dd-76e0-8353-6b4ea2eb2a10","w":"built-in","d":27,"t":300027,"b":120027,"a":3}},"s":1794885943656,"z":68,"o":{"attempt":1,"stage":"checked","verdict":{"decision":"allow","rule":"default","reason":"no output rule matched","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"e":5}','{"n":1,"t":1794885943656,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885943656,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
{"n":3,"t":1794885943683,"k":"dispatched","a":1,"w":"built-in"}
{"n":4,"t":1794885943704,"k":"output_held","a":1}
{"n":5,"t":1794885943724,"k":"succeeded","a":1}
','2');
CREATE TABLE jobs_hot (
    seq INTEGER PRIMARY KEY,
    version INTEGER NOT NULL CHECK (version > 0),
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),
    lane_id INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    delayed INTEGER NOT NULL CHECK (delayed = 0 OR state = 2),
    -- When a timer must fire next: the job's deadline, or sooner the end of the time people have to approve it.
    deadline_at INTEGER,
    -- The worker's session that holds the attempt. A RUNNING job has none once its work is done and its result is held.
    session TEXT CHECK (CASE state WHEN 3 THEN session IS NOT NULL WHEN 4 THEN TRUE ELSE session IS NULL END),
    life TEXT NOT NULL,
    events TEXT NOT NULL
) STRICT;
INSERT INTO "jobs_hot" VALUES(4,1,2,4,1794972320260,1,NULL,NULL,'{"n":1,"a":{"n":1,"t":"a223dc9765b11c1467b542461c4062fd","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"s":1794885920261,"d":86399999,"e":2}','{"n":1,"t":1794885920261,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885920261,"k":"scheduled","a":1,"u":1794972320260,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
');
INSERT INTO "jobs_hot" VALUES(5,1,1,1,1794885920400,0,NULL,NULL,'{"n":1,"a":{"n":1,"t":"4f39429d4337db079fec479f618b1fb8","v":{"decision":"require_approval","rule":"ask","rule_hash":"1a22180f97cb4513bcad6bf96c570931e624cbf9a05aff6d636640af41e5c02a","reason":"money moves","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4","approval":{"approvers":1}}},"s":1794885920400,"p":{"rule":"ask","rule_hash":"1a22180f97cb4513bcad6bf96c570931e624cbf9a05aff6d636640af41e5c02a","terms":{"approvers":1},"asked_at":1794885920400},"e":2}','{"n":1,"t":1794885920400,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885920400,"k":"approval_required","a":1,"m":"money moves","p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#ask"}
');
INSERT INTO "jobs_hot" VALUES(8,1,2,5,1794885920585,0,NULL,NULL,'{"n":1,"a":{"n":1,"t":"311c8747478a68c7cd30e6887be952ac","v":{"decision":"allow","rule":"default","reason":"nothing forbids it","snapshot":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4"}},"s":1794885920585,"e":2}','{"n":1,"t":1794885920585,"k":"submitted","a":1,"c":"admin"}
{"n":2,"t":1794885920585,"k":"scheduled","a":1,"p":"sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4#default"}
');
CREATE TABLE lanes (
    lane_id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO "lanes" VALUES(1,'{"priority":"default","tenant":"default","shape":{"topic":"job.echo"}}');
INSERT INTO "lanes" VALUES(2,'{"priority":"default","tenant":"default","shape":{"topic":"job.flaky"}}');
INSERT INTO "lanes" VALUES(3,'{"priority":"default","tenant":"default","shape":{"topic":"job.always_fail"}}');
INSERT INTO "lanes" VALUES(4,'{"priority":"default","tenant":"default","shape":{"topic":"job.noop"}}');
INSERT INTO "lanes" VALUES(5,'{"priority":"high","tenant":"default","shape":{"topic":"job.echo","requires":["gpu"]}}');
INSERT INTO "lanes" VALUES(6,'{"priority":"critical","tenant":"default","shape":{"topic":"job.echo"}}');
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT,
    epoch INTEGER NOT NULL CHECK (epoch > 0),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
    outbox_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    sink TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE TABLE run_jobs (
    seq INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL
) STRICT;
INSERT INTO "run_jobs" VALUES(11,'run-01a1e789-a9b3-7034-afcc-b64aa30e6844');
INSERT INTO "run_jobs" VALUES(12,'run-01a1e789-a9b3-7034-afcc-b64aa30e6844');
INSERT INTO "run_jobs" VALUES(13,'run-01a1e789-a9b3-7034-afcc-b64aa30e6844');
INSERT INTO "run_jobs" VALUES(17,'run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f');
INSERT INTO "run_jobs" VALUES(18,'run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f');
INSERT INTO "run_jobs" VALUES(19,'run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f');
CREATE TABLE run_keys (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    hash BLOB NOT NULL,
    free_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE run_news (
    news_no INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    seq INTEGER,
    child TEXT CHECK ((child IS NULL) <> (seq IS NULL))
) STRICT;
CREATE TABLE run_nodes (
    run_no INTEGER NOT NULL,
    node INTEGER NOT NULL,
    item INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run_no, node, item)
) STRICT;
INSERT INTO "run_nodes" VALUES(1,0,-1,4,'{"state":"SUCCEEDED","job":"run-01a1e789-a9b3-7034-afcc-b64aa30e6844.0~0","began_at":1794885921203,"ended_at":1794885921300,"undo":{"state":"DONE","job":"comp-668e8443-9961-86dd-a0f8-178226060644~0"}}');
INSERT INTO "run_nodes" VALUES(1,1,-1,3,'{"state":"FAILED","job":"run-01a1e789-a9b3-7034-afcc-b64aa30e6844.1~0","began_at":1794885921300,"ended_at":1794885921387,"failure":{"reason":"failed","message":"this job always fails"}}');
INSERT INTO "run_nodes" VALUES(2,0,-1,2,'{"state":"SUCCEEDED","job":"run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f.0~0","began_at":1794885943625,"ended_at":1794885943656}');
INSERT INTO "run_nodes" VALUES(2,1,-1,3,'{"state":"SUCCEEDED","began_at":1794885943656,"ended_at":1794885943739,"items":{"list":"[1,2]","count":2}}');
INSERT INTO "run_nodes" VALUES(2,1,0,3,'{"state":"SUCCEEDED","job":"run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f.1.0~0","began_at":1794885943656,"ended_at":1794885943739}');
INSERT INTO "run_nodes" VALUES(2,1,1,3,'{"state":"SUCCEEDED","job":"run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f.1.1~0","began_at":1794885943656,"ended_at":1794885943739}');
INSERT INTO "run_nodes" VALUES(2,2,-1,3,'{"state":"RUNNING","began_at":1794885943739,"wakes_at":1794972343739}');
CREATE TABLE runs (
    run_no INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL CHECK (version > 0),
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 8),
    wakes_at INTEGER,
    ended_at INTEGER CHECK ((ended_at IS NULL) = (state < 4)),
    parent TEXT,
    tenant TEXT NOT NULL,
    dag TEXT NOT NULL,
    head TEXT NOT NULL
) STRICT;
INSERT INTO "runs" VALUES(1,'run-01a1e789-a9b3-7034-afcc-b64aa30e6844',4,8,NULL,1794885921510,NULL,'default','bad','{"id":"run-01a1e789-a9b3-7034-afcc-b64aa30e6844","dag":{"name":"bad","version":1},"tenant":"default","actor":"admin","params":"{}","began_at":1794885921203,"ended_at":1794885921510,"failure":{"reason":"failed","message":"node \"two\": this job always fails"},"closing":"compensate","done":2,"total":2}');
INSERT INTO "runs" VALUES(2,'run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f',3,0,1794972343739,NULL,NULL,'default','saga','{"id":"run-01a1e78a-0149-70b6-9a0f-f64e6a5fd19f","dag":{"name":"saga","version":1},"tenant":"default","actor":"admin","params":"{\"n\":3}","began_at":1794885943625,"done":2,"total":3}');
CREATE TABLE schedule_slots (
    tenant TEXT NOT NULL,
    schedule TEXT NOT NULL,
    series TEXT NOT NULL,
    nominal INTEGER NOT NULL,
    place INTEGER NOT NULL,
    outcome INTEGER NOT NULL CHECK (outcome BETWEEN 0 AND 5),
    decided_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, schedule, series, nominal)
) STRICT, WITHOUT ROWID;
INSERT INTO "schedule_slots" VALUES('default','often','',1794885922000,117629643784192000,1,1794885922003,'{"key":{"series":"","nominal":1794885922000},"outcome":"STARTED","target":{"job":"cron-045c8403-1978-8da5-bea4-890432487441"},"decided_at":1794885922003}');
INSERT INTO "schedule_slots" VALUES('default','often','',1794885923000,117629643849728000,1,1794885923039,'{"key":{"series":"","nominal":1794885923000},"outcome":"STARTED","target":{"job":"cron-fbd7044b-b774-8f71-93b5-4c67ad073fbf"},"decided_at":1794885923039}');
INSERT INTO "schedule_slots" VALUES('default','often','',1794885924000,117629643915264000,1,1794885924001,'{"key":{"series":"","nominal":1794885924000},"outcome":"STARTED","target":{"job":"cron-35714955-af2d-8db9-be6a-5f1b9eaed038"},"decided_at":1794885924001}');
CREATE TABLE schedules (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    wakes_at INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT;
INSERT INTO "schedules" VALUES('default','nightly',1,1794963600000,'{"actor":"admin","birth":"01a1e789-ab3e-77da-b2a2-6ccc0c5b3c3c","revision":1,"spec":{"rhythm":{"cron":"0 2 * * *"},"time_zone":"Europe/Berlin","jitter_ms":0,"grace_ms":60000,"misfire":"latest","misfire_window_ms":86400000,"overlap":"skip","queue":1,"paused":false,"work":{"job":{"topic":"job.noop"}}},"done_until":1794885921598}');
INSERT INTO "schedules" VALUES('default','often',9,NULL,'{"actor":"admin","birth":"01a1e789-ab3e-7361-a253-295d344a48f4","revision":1,"spec":{"rhythm":{"every_ms":1000},"time_zone":"UTC","jitter_ms":0,"grace_ms":60000,"misfire":"latest","misfire_window_ms":86400000,"overlap":"skip","queue":1,"paused":false,"work":{"job":{"topic":"job.noop"}}},"done_until":1794885924000,"paused_at":1794885924677}');
CREATE TABLE schema_version (only INTEGER PRIMARY KEY CHECK (only = 1), version INTEGER NOT NULL) STRICT;
INSERT INTO "schema_version" VALUES(1,8);
CREATE TABLE sessions (
    session TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL CHECK (epoch > 0),
    edge TEXT NOT NULL,
    closed_at INTEGER,
    profile TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "sessions" VALUES('01a1e789-929f-7832-81fd-48c2a5c18a4b',1,'01a1e789-92b8-7a05-a8cf-60d2a5d74097',1794885941589,'{"worker":"built-in","pool":"default","topics":["job.always_fail","job.db_tx","job.echo","job.flaky","job.http_call","job.noop","job.sleep"],"capabilities":[],"labels":{},"slots":16,"in_process":true}');
INSERT INTO "sessions" VALUES('01a1e789-f8dd-76e0-8353-6b4ea2eb2a10',1,'01a1e789-f8de-78f2-99a4-7f58f4ed782a',NULL,'{"worker":"built-in","pool":"default","topics":["job.always_fail","job.db_tx","job.echo","job.flaky","job.http_call","job.noop","job.sleep"],"capabilities":[],"labels":{},"slots":16,"in_process":true}');
CREATE TABLE snapshots (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT;
INSERT INTO "snapshots" VALUES('policy','sha256:07fe185f9b150028eed4d0d5c9758be12ade815dd0bd8c78c1e854a53f5c6be4','version: 1
default: {decision: allow, reason: nothing forbids it}
rules:
  - {id: ask, match: {labels: {team: payments}}, decision: require_approval, reason: money moves}
  - {id: never, match: {topics: [job.forbidden]}, decision: deny, reason: never}
  - {id: bound, match: {topics: [job.sleep]}, decision: allow_with_constraints, reason: bounded, constraints: {max_runtime: 60s}}
output:
  rules:
    - {id: cards, match: {scan: [credit_card]}, decision: quarantine, reason: a card, hold: true}
');
CREATE TABLE tallies (
    tenant TEXT PRIMARY KEY,
    live INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "tallies" VALUES('default',3,16,1,136);
CREATE INDEX jobs_ready ON jobs_hot (lane_id, due_at) WHERE state = 2;
CREATE INDEX jobs_due ON jobs_hot (due_at) WHERE state = 2 AND delayed = 1;
CREATE INDEX jobs_pending ON jobs_hot (due_at) WHERE state = 0;
CREATE INDEX jobs_deadline ON jobs_hot (deadline_at) WHERE deadline_at IS NOT NULL;
CREATE INDEX jobs_held ON jobs_hot (session) WHERE session IS NOT NULL;
CREATE INDEX jobs_ended ON jobs_done (ended_at);
CREATE INDEX idempotency_job ON idempotency (seq);
CREATE INDEX idempotency_life ON idempotency (free_at);
CREATE INDEX sessions_edge ON sessions (edge);
CREATE INDEX runs_live ON runs (run_id) WHERE state < 4;
CREATE INDEX runs_waking ON runs (wakes_at, run_id) WHERE state < 4 AND wakes_at IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended_at, run_id) WHERE ended_at IS NOT NULL;
CREATE INDEX run_nodes_changed ON run_nodes (run_no, version);
CREATE INDEX run_keys_run ON run_keys (run_id);
CREATE INDEX run_keys_life ON run_keys (free_at);
CREATE INDEX run_news_run ON run_news (run_id);
CREATE INDEX run_news_age ON run_news (at);
CREATE INDEX schedules_waking ON schedules (wakes_at, tenant, name) WHERE wakes_at IS NOT NULL;
CREATE INDEX slots_listed ON schedule_slots (tenant, schedule, place);
CREATE INDEX slots_decided ON schedule_slots (decided_at, tenant, schedule, series, nominal) WHERE outcome NOT IN (0, 2);
CREATE INDEX runs_over ON runs (tenant) WHERE state >= 4;
CREATE INDEX outbox_job ON outbox (job_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('audit',15);
INSERT INTO "sqlite_sequence" VALUES('dead_letters',6);
INSERT INTO "sqlite_sequence" VALUES('runs',2);
INSERT INTO "sqlite_sequence" VALUES('run_news',6);
COMMIT;
