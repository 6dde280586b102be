-- The statements of the SQLite store. Times are nanoseconds of CLOCK_BOOTTIME unless a column says wall.
-- Rows: directory (a listed folder and its signature), file, task (a processor's work on a file), result (a text in a
-- pack, by content), history, note. `due` is the next look of a settling task, or the next attempt of a failed one.

-- :name migration_1
-- The first schema.
CREATE TABLE note (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counter VALUES ('change', 0);
CREATE TABLE directory (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, signature BLOB NOT NULL);
CREATE TABLE file (
  id INTEGER PRIMARY KEY,
  directory INTEGER NOT NULL REFERENCES directory (id),
  name BLOB NOT NULL,
  kind TEXT NOT NULL,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  ctime_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  plan TEXT NOT NULL,
  folder TEXT NOT NULL DEFAULT '',
  presence TEXT NOT NULL DEFAULT 'present',
  digest BLOB,
  verify INTEGER NOT NULL DEFAULT 0,
  change INTEGER NOT NULL DEFAULT 0,
  unsettled_since INTEGER NOT NULL DEFAULT 0,
  moves INTEGER NOT NULL DEFAULT 0,
  UNIQUE (directory, name)
);
CREATE INDEX file_change ON file (change, id) WHERE change > 0;
CREATE INDEX file_moving ON file (moves) WHERE moves > 0;
CREATE TABLE result (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL,
  processor TEXT NOT NULL,
  version TEXT NOT NULL,
  settings TEXT NOT NULL,
  pack TEXT NOT NULL,
  place INTEGER NOT NULL,
  length INTEGER NOT NULL,
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  UNIQUE (digest, processor, version, settings)
);
CREATE TABLE task (
  id INTEGER PRIMARY KEY,
  file INTEGER NOT NULL REFERENCES file (id),
  processor TEXT NOT NULL,
  version TEXT NOT NULL,
  settings TEXT NOT NULL,
  state TEXT NOT NULL,
  priority INTEGER NOT NULL,
  urgency INTEGER NOT NULL,
  size INTEGER NOT NULL,
  alone INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  owner TEXT,
  lease_end INTEGER NOT NULL DEFAULT 0,
  due INTEGER NOT NULL DEFAULT 0,
  failure TEXT,
  reason TEXT NOT NULL DEFAULT '',
  ended_wall_ns INTEGER NOT NULL DEFAULT 0,
  result INTEGER REFERENCES result (id),
  UNIQUE (file, processor)
);
CREATE INDEX task_ready ON task (alone, priority, urgency, size, id) WHERE state = 'ready';
CREATE INDEX task_claimed ON task (owner, lease_end) WHERE state = 'claimed';
CREATE INDEX task_settling ON task (due, file) WHERE state = 'settling';
CREATE INDEX task_failed ON task (due) WHERE state = 'failed';
CREATE INDEX task_stuck ON task (state, failure) WHERE state IN ('failed', 'blocked');
CREATE TABLE history (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL REFERENCES task (id) ON DELETE CASCADE,
  at_wall_ns INTEGER NOT NULL,
  event TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE INDEX history_task ON history (task);

-- :name get_note
-- A remembered fact.
SELECT value FROM note WHERE key = ?;

-- :name set_note
-- Remember a fact.
INSERT INTO note VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- :name boot_due_tasks
-- After a restart of the host no due time means anything: look and try again at once.
UPDATE task SET due = 0 WHERE state = 'settling' OR state = 'failed';

-- :name boot_claims
-- After a restart of the host every owner of before is dead.
UPDATE task SET lease_end = 0 WHERE state = 'claimed';

-- :name boot_unsettled
-- After a restart of the host the time that a file has not rested starts anew.
UPDATE file SET unsettled_since = ? WHERE unsettled_since > 0;

-- :name signature
-- What a folder looked like when it was registered.
SELECT signature FROM directory WHERE path = ?;

-- :name known_files
-- The files known in a folder.
SELECT f.name, f.id, f.kind, f.size, f.mtime_ns, f.ctime_ns, f.inode, f.plan, f.presence
FROM directory d JOIN file f ON f.directory = d.id WHERE d.path = ?;

-- :name directory_row
-- A folder's row.
SELECT id, signature FROM directory WHERE path = ?;

-- :name put_directory
-- A folder with its new signature; its id.
INSERT INTO directory (path, signature) VALUES (?, ?)
ON CONFLICT (path) DO UPDATE SET signature = excluded.signature RETURNING id;

-- :name last_file
-- The greatest file id, so that new ones can be numbered in one go.
SELECT coalesce(max(id), 0) FROM file;

-- :name insert_file
-- A file seen for the first time.
INSERT INTO file (id, directory, name, kind, size, mtime_ns, ctime_ns, inode, plan, folder, unsettled_since)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- :name insert_task
-- A task of a new file, or one that a file wants from now on.
INSERT INTO task (file, processor, version, settings, state, priority, urgency, size, due, reason)
VALUES (?, ?, ?, ?, 'settling', ?, ?, ?, ?, ?);

-- :name change_file
-- A file whose stamp or plan is another one now.
UPDATE file SET kind = ?, size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, plan = ?, folder = ?, unsettled_since = ?,
  moves = 0, presence = 'present', verify = 0 WHERE id = ?;

-- :name change_task
-- A task of a changed file starts over; a claim on it is lost by the new fence.
UPDATE task SET version = ?, settings = ?, state = 'settling', priority = ?, urgency = ?, size = ?, alone = 0,
  attempts = 0, fence = fence + 1, owner = NULL, due = ?, failure = NULL, reason = ? WHERE file = ? AND processor = ?;

-- :name drop_tasks
-- Tasks that a file does not want any more.
DELETE FROM task WHERE file = ? AND processor NOT IN (SELECT value FROM json_each(?));

-- :name refresh_file
-- Only ctime or inode changed: the result serves, the content is verified some time.
UPDATE file SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, verify = 1, presence = 'present' WHERE id = ?;

-- :name refresh_tasks
-- New rights may free what was blocked for lack of them; a claim that reads under the old stamp is lost.
UPDATE task SET state = 'settling', attempts = 0, fence = fence + 1, owner = NULL, due = ?,
  failure = NULL, reason = 'permission or owner changed'
WHERE file = ? AND (state = 'blocked' AND failure = 'permission' OR state = 'claimed');

-- :name return_file
-- A file that was gone is seen again.
UPDATE file SET presence = 'present', change = ? WHERE id = ?;

-- :name return_tasks
-- What was blocked because the file was gone passes the settle gate again.
UPDATE task SET state = 'settling', attempts = 0, due = ?, failure = NULL, reason = 'seen again'
WHERE file = ? AND state = 'blocked' AND failure = 'vanished';

-- :name unsettled
-- Files whose look is due.
SELECT f.id, d.path, f.name, f.size, f.mtime_ns, f.ctime_ns, f.inode, f.unsettled_since, f.moves
FROM (SELECT file FROM task WHERE state = 'settling' AND due <= ? ORDER BY due LIMIT ?) t
JOIN file f ON f.id = t.file JOIN directory d ON d.id = f.directory;

-- :name settle_file
-- A file that rests.
UPDATE file SET unsettled_since = 0, moves = 0 WHERE id = ?;

-- :name settle_tasks
-- The tasks of a file that rests may be claimed.
UPDATE task SET state = 'ready', due = 0, reason = '' WHERE file = ? AND state = 'settling';

-- :name move_file
-- A file that was seen to change.
UPDATE file SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, moves = moves + 1 WHERE id = ?;

-- :name move_tasks
-- The tasks of a file that changes wait for the next look.
UPDATE task SET due = ?, size = ?, reason = ? WHERE file = ? AND state = 'settling';

-- :name block_settling
-- A file that grows for ever or is gone.
UPDATE task SET state = 'blocked', due = 0, failure = ?, reason = ? WHERE file = ? AND state = 'settling' RETURNING id;

-- :name suspect_file
-- A look did not find the file.
UPDATE file SET presence = 'suspected', change = ? WHERE id = ?;

-- :name next_change
-- The next change number.
UPDATE counter SET value = value + 1 WHERE name = 'change' RETURNING value;

-- :name held
-- The claims that an owner holds, with their fences.
SELECT id, fence FROM task WHERE state = 'claimed' AND owner = ?;

-- :name finish_task
-- The end of a claim, if it is still held.
UPDATE task SET state = ?, attempts = attempts - ?, owner = NULL, due = ?, failure = ?, reason = ?, alone = ?,
  ended_wall_ns = ?, result = coalesce(?, result) WHERE id = ? AND fence = ? AND state = 'claimed' AND owner = ?;

-- :name finish_file
-- What a finished task learned about its file.
UPDATE file SET digest = coalesce(?, digest), change = ?, verify = 0 WHERE id = ?;

-- :name unsettle_file
-- A file that changed while it was read starts settling again.
UPDATE file SET unsettled_since = ? WHERE id = ? AND unsettled_since = 0;

-- :name insert_result
-- The text of a content, unless it is known.
INSERT INTO result (digest, processor, version, settings, pack, place, length, kind, title)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- :name find_result
-- The text of a content.
SELECT id, pack, place, length, kind, title FROM result
WHERE digest = ? AND processor = ? AND version = ? AND settings = ?;

-- :name wake_failed
-- Failed tasks whose time has come may be claimed again.
UPDATE task SET state = 'ready', due = 0 WHERE state = 'failed' AND due <= ?;

-- :name pick
-- The next tasks in order; those that may have killed a worker come last.
SELECT t.id, t.file, t.fence, d.path, f.name, f.kind, f.size, f.mtime_ns, f.ctime_ns, f.inode,
  t.processor, t.version, t.settings, t.attempts, f.digest, t.alone
FROM task t JOIN file f ON f.id = t.file JOIN directory d ON d.id = f.directory
WHERE t.state = 'ready' ORDER BY t.alone, t.priority, t.urgency, t.size, t.id LIMIT ?;

-- :name claim
-- Take a task: counted before work starts, under a new fence.
UPDATE task SET state = 'claimed', owner = ?, lease_end = ?, fence = fence + 1, attempts = attempts + 1 WHERE id = ?;

-- :name renew
-- Move a lease end, if the claim is still held.
UPDATE task SET lease_end = ? WHERE id = ? AND fence = ? AND state = 'claimed' AND owner = ?;

-- :name claiming_owners
-- Owners that hold claims.
SELECT DISTINCT owner FROM task WHERE state = 'claimed';

-- :name recover
-- Claims of dead owners and late ones go back, or are blocked when their attempts are used up.
UPDATE task SET state = CASE WHEN attempts >= ? THEN 'blocked' ELSE 'ready' END,
  failure = CASE WHEN attempts >= ? THEN 'crash' END,
  reason = CASE WHEN attempts >= ? THEN 'each participant that took it died or stopped' ELSE reason END,
  owner = NULL, alone = 1
WHERE state = 'claimed' AND (lease_end <= ? OR owner IN (SELECT value FROM json_each(?))) RETURNING id, file, state;

-- :name touch_file
-- What a searcher sees of the file changed.
UPDATE file SET change = ? WHERE id = ?;

-- :name backlog
-- How much is left, by state.
SELECT (SELECT count(*) FROM task WHERE state = 'settling'), (SELECT count(*) FROM task WHERE state = 'ready'),
  (SELECT count(*) FROM task WHERE state = 'claimed'), (SELECT count(*) FROM task WHERE state = 'failed');

-- :name count_moving
-- Files that were seen to change several times.
SELECT count(*) FROM file WHERE moves > 0 AND moves >= ?;

-- :name next_due
-- When the next look or attempt is due.
SELECT min(due) FROM (SELECT min(due) AS due FROM task WHERE state = 'settling'
  UNION ALL SELECT min(due) FROM task WHERE state = 'failed');

-- :name changes_after
-- Files whose searchable side changed, oldest change first.
SELECT f.change, f.id, d.path, f.name, f.size, f.mtime_ns, f.ctime_ns, f.inode, f.presence,
  r.digest, r.processor, r.version, r.settings, r.pack, r.place, r.length, r.kind, r.title
FROM file f JOIN directory d ON d.id = f.directory
LEFT JOIN result r ON r.id = (SELECT max(t.result) FROM task t WHERE t.file = f.id)
WHERE f.change > 0 AND (f.change, f.id) > (?, ?) ORDER BY f.change, f.id LIMIT ?;

-- :name count_states
-- Files and bytes by the state of the least finished task, and by folder.
WITH least AS (
  SELECT f.size AS size, f.folder AS folder, min(CASE t.state WHEN 'settling' THEN 0 WHEN 'ready' THEN 1
    WHEN 'claimed' THEN 2 WHEN 'failed' THEN 3 WHEN 'blocked' THEN 4 WHEN 'skipped' THEN 5 ELSE 6 END) AS rank
  FROM file f JOIN task t ON t.file = f.id GROUP BY f.id)
SELECT folder, rank, count(*), sum(size) FROM least GROUP BY folder, rank;

-- :name count_presence
-- Files by presence.
SELECT presence, count(*) FROM file GROUP BY presence;

-- :name count_failures
-- Failed and blocked tasks by class; of those whose file is there.
SELECT t.failure, count(*) FROM task t JOIN file f ON f.id = t.file
WHERE t.state IN ('failed', 'blocked') AND f.presence = 'present' GROUP BY t.failure;

-- :name find_file
-- One file.
SELECT f.id, f.kind, f.size, f.mtime_ns, f.ctime_ns, f.inode, f.presence, f.digest
FROM directory d JOIN file f ON f.directory = d.id WHERE d.path = ? AND f.name = ?;

-- :name tasks_of
-- The tasks of a file.
SELECT processor, version, settings, state, attempts, failure, reason, owner, due, ended_wall_ns FROM task WHERE file = ? ORDER BY id;

-- :name history_of
-- The history of a file, oldest first.
SELECT h.at_wall_ns, t.processor, h.event, h.detail FROM history h JOIN task t ON t.id = h.task
WHERE t.file = ? ORDER BY h.id;

-- :name keep_ends
-- What a task came to last is history once it starts over.
INSERT INTO history (task, at_wall_ns, event, detail)
SELECT id, ended_wall_ns, state, reason FROM task WHERE file = ? AND state IN ('done', 'skipped');

-- :name insert_history
-- One line of history.
INSERT INTO history (task, at_wall_ns, event, detail) VALUES (?, ?, ?, ?);

-- :name all_paths
-- Every known path.
SELECT d.path, f.name FROM file f JOIN directory d ON d.id = f.directory;

-- :name stuck
-- Files that failed or are blocked.
SELECT DISTINCT d.path, f.name FROM task t JOIN file f ON f.id = t.file JOIN directory d ON d.id = f.directory
WHERE t.state IN ('failed', 'blocked') ORDER BY t.id DESC LIMIT ?;

-- :name retry
-- Free failed and blocked tasks; they are looked at again first. The folder is its path, its path with '/', with '0'.
UPDATE task SET state = 'settling', attempts = 0, due = 0, failure = NULL, reason = 'retried'
WHERE state IN ('failed', 'blocked') AND (:failure IS NULL OR failure = :failure) AND (:folder IS NULL OR file IN (
  SELECT f.id FROM file f JOIN directory d ON d.id = f.directory
  WHERE d.path = :folder OR d.path >= :below AND d.path < :beyond OR d.path = :parent AND f.name = :name))
RETURNING id, file;

-- :name retry_file
-- A retried file counts as unsettled from now on.
UPDATE file SET unsettled_since = ?, moves = 0 WHERE id = ?;
