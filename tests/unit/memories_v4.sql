PRAGMA application_id = 1163347277;
PRAGMA user_version = 4;
BEGIN TRANSACTION;
CREATE TABLE cells (
    scope INTEGER NOT NULL,
    cell INTEGER NOT NULL,
    centre BLOB NOT NULL,
    PRIMARY KEY (scope, cell)
);
CREATE TABLE deletions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    "user" TEXT NOT NULL,
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    reason TEXT NOT NULL
);
INSERT INTO "deletions" VALUES(1,3.0,'ann','','gone','asked for');
INSERT INTO "deletions" VALUES(2,4.0,'erased:81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9','','*','asked for');
CREATE TABLE encoder (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    name TEXT NOT NULL,
    probe BLOB NOT NULL,
    file INTEGER NOT NULL
);
INSERT INTO "encoder" VALUES(1,'words',X'00000000E5665F3E00000000B7B8B23CE5665F3E0000000000000000E5665F3EE566DF3EE5665F3E00000000E566DF3EE5665F3E00000000E5665F3E0000000000000000E5665F3E0000000000000000E5665F3E00000000E566DF3EE5665F3E',1);
CREATE TABLE erasing ("user" TEXT NOT NULL);
CREATE TABLE memories (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope INTEGER NOT NULL,
    id TEXT NOT NULL,
    content TEXT NOT NULL,
    kind TEXT NOT NULL,
    source_kind TEXT NOT NULL,
    source_id TEXT NOT NULL,
    reliability REAL NOT NULL,
    metadata TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    veracity REAL NOT NULL,
    uncertainty REAL NOT NULL,
    recall_count INTEGER NOT NULL,
    correct_count INTEGER NOT NULL,
    incorrect_count INTEGER NOT NULL,
    contradicts TEXT NOT NULL,
    confirmed_at REAL NOT NULL DEFAULT 0,
    valid_from REAL,
    valid_until REAL,
    revisions INTEGER NOT NULL,
    cell INTEGER,
    checksum INTEGER NOT NULL,
    UNIQUE (scope, id)
);
INSERT INTO "memories" VALUES(1,1,'tea','Ann drinks tea','fact','user','ann',0.8,'{"a":"é"}',1.0,1.0,0.5,1.0,1,0,0,'[]',0.0,NULL,NULL,1,0,1464079843);
INSERT INTO "memories" VALUES(3,2,'bridge','The bridge is long','fact','user','ann',0.8,'{}',1.0,2.0,0.6,1.0,2,1,0,'[]',2.0,NULL,NULL,2,0,2294589114);
CREATE TABLE postings (
    word INTEGER NOT NULL,
    memory INTEGER NOT NULL,
    times INTEGER NOT NULL,
    length INTEGER NOT NULL,
    PRIMARY KEY (word, memory)
) WITHOUT ROWID;
INSERT INTO "postings" VALUES(2,1,1,3);
INSERT INTO "postings" VALUES(3,1,1,3);
INSERT INTO "postings" VALUES(6,1,1,3);
INSERT INTO "postings" VALUES(9,3,1,4);
INSERT INTO "postings" VALUES(10,3,1,4);
INSERT INTO "postings" VALUES(11,3,1,4);
INSERT INTO "postings" VALUES(12,3,1,4);
CREATE TABLE revisions (
    memory INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at REAL NOT NULL,
    reason TEXT NOT NULL,
    veracity_before REAL NOT NULL,
    veracity_after REAL NOT NULL,
    evidence TEXT NOT NULL,
    content_before TEXT NOT NULL,
    uncertainty REAL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (memory, number)
) WITHOUT ROWID;
INSERT INTO "revisions" VALUES(1,1,1.0,'added',0.5,0.5,'[]','',1.0,2361436426);
INSERT INTO "revisions" VALUES(3,1,1.0,'added',0.5,0.5,'[]','',1.0,2361436426);
INSERT INTO "revisions" VALUES(3,2,2.0,'feedback',0.5,0.6,'["feedback:user:ann:correct","passage:p1"]','',1.0,3769493792);
CREATE TABLE scopes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    "user" TEXT NOT NULL,
    agent TEXT NOT NULL,
    memories INTEGER NOT NULL DEFAULT 0,
    words INTEGER NOT NULL DEFAULT 0, vectors_changed INTEGER NOT NULL DEFAULT 0,
    UNIQUE ("user", agent)
);
INSERT INTO "scopes" VALUES(1,'ann','',1,3,3);
INSERT INTO "scopes" VALUES(2,'','',1,4,2);
CREATE TABLE state (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    words TEXT NOT NULL,
    unscrubbed INTEGER NOT NULL
);
INSERT INTO "state" VALUES(1,'19410e1bf632c552',0);
CREATE TABLE unwiped (memory INTEGER PRIMARY KEY);
CREATE TABLE words (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope INTEGER NOT NULL,
    word TEXT NOT NULL,
    memories INTEGER NOT NULL,
    UNIQUE (scope, word)
);
INSERT INTO "words" VALUES(2,1,'ann',1);
INSERT INTO "words" VALUES(3,1,'drink',1);
INSERT INTO "words" VALUES(6,1,'tea',1);
INSERT INTO "words" VALUES(9,2,'be',1);
INSERT INTO "words" VALUES(10,2,'bridg',1);
INSERT INTO "words" VALUES(11,2,'long',1);
INSERT INTO "words" VALUES(12,2,'the',1);
CREATE INDEX memories_without_vector ON memories (number) WHERE cell IS NULL;
CREATE INDEX deletions_by_scope ON deletions ("user", agent, id);
CREATE INDEX memories_by_cell ON memories (scope, cell);
CREATE TRIGGER revisions_stay_as_they_are BEFORE UPDATE ON revisions
BEGIN SELECT RAISE(ABORT, 'revisions are never changed'); END;
CREATE TRIGGER revisions_stay BEFORE DELETE ON revisions
WHEN EXISTS (SELECT 1 FROM memories WHERE number = OLD.memory)
BEGIN SELECT RAISE(ABORT, 'revisions go with their memory only'); END;
CREATE TRIGGER revisions_go_with_their_memory AFTER DELETE ON memories
BEGIN DELETE FROM revisions WHERE memory = OLD.number; END;
CREATE TRIGGER deletions_stay_as_they_are BEFORE UPDATE ON deletions
BEGIN SELECT RAISE(ABORT, 'the log of deletions is never changed'); END;
CREATE TRIGGER deletions_stay BEFORE DELETE ON deletions WHEN OLD.user NOT IN (SELECT user FROM erasing)
BEGIN SELECT RAISE(ABORT, 'the log of deletions is never shortened'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('scopes',3);
INSERT INTO "sqlite_sequence" VALUES('memories',4);
INSERT INTO "sqlite_sequence" VALUES('words',14);
INSERT INTO "sqlite_sequence" VALUES('deletions',2);
COMMIT;
