-- The statements of the SQLite store. Times are nanoseconds of CLOCK_BOOTTIME unless a column says wall.
-- Rows: directory (a listed folder and its signature), file, task (a processor's work on a file), queue (tasks that may
-- be claimed, in order), claim (tasks that are being worked on), result (a text in a pack, by content), history, note.
-- `due` is the next look of a settling task, or the next attempt of a failed one. A claim moves rows between the small
-- tables queue and claim and leaves the task's row, with state 'ready', its fence and attempts, as it was: a claim and
-- its end together touch one page of `task`, which is what makes them cheap. What a claim counted is written to the
-- task when it ends. A task is in `queue` exactly while its state is 'ready' and it is not in `claim`.

-- :name migration_1
-- The first schema.
CREATE TABLE note (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counter VALUES ('change', 0), ('task', 0);
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
  verify INTEGER NOT NULL DEFAULT 0,
  unsettled_since INTEGER NOT NULL DEFAULT 0,
  moves INTEGER NOT NULL DEFAULT 0,
  UNIQUE (directory, name)
);
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
  due INTEGER NOT NULL DEFAULT 0,
  failure TEXT,
  reason TEXT NOT NULL DEFAULT '',
  ended_wall_ns INTEGER NOT NULL DEFAULT 0,
  result INTEGER REFERENCES result (id),
  digest BLOB,
  change INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX task_file ON task (file);
CREATE INDEX task_settling ON task (due, file) WHERE state = 'settling';
CREATE INDEX task_failed ON task (due) WHERE state = 'failed';
CREATE INDEX task_stuck ON task (ended_wall_ns, id) WHERE state IN ('failed', 'blocked');
CREATE INDEX task_change ON task (change, file) WHERE change > 0;
CREATE TABLE queue (
  alone INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  urgency INTEGER NOT NULL,
  size INTEGER NOT NULL,
  task INTEGER NOT NULL,
  PRIMARY KEY (alone, priority, urgency, size, task)
) WITHOUT ROWID;
CREATE TABLE claim (
  task INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  fence INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  lease_end INTEGER NOT NULL
);
CREATE TABLE history (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL REFERENCES task (id),
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
UPDATE claim SET lease_end = 0;

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

-- :name next_tasks
-- Numbers for so many new tasks; the last one. A number is never used twice, so no claim outlives its task's row.
UPDATE counter SET value = value + ? WHERE name = 'task' RETURNING value;

-- :name insert_task
-- A task of a new file, or one that a file wants from now on.
INSERT INTO task (id, file, processor, version, settings, state, priority, urgency, size, due, reason)
VALUES (?, ?, ?, ?, ?, 'settling', ?, ?, ?, ?, ?);

-- :name unqueue_file
-- The tasks of a file may not be claimed for now. To be run before a column of the order changes.
DELETE FROM queue WHERE (alone, priority, urgency, size, task) IN
  (SELECT alone, priority, urgency, size, id FROM task WHERE file = ? AND state = 'ready');

-- :name outdate_claims
-- The claims on a file are lost: the fences of its tasks go beyond theirs.
UPDATE task SET fence = c.fence + 1 FROM claim c WHERE task.file = ? AND c.task = task.id;

-- :name unclaim_file
-- Nobody holds a task of this file any more. To be run after `outdate_claims`.
DELETE FROM claim WHERE task IN (SELECT id FROM task WHERE file = ?);

-- :name change_file
-- A file whose stamp or plan is another one now.
UPDATE file SET kind = ?, size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, plan = ?, folder = ?, unsettled_since = ?,
  moves = 0, presence = 'present', verify = 0 WHERE id = ?;

-- :name change_task
-- A task of a changed file starts over.
UPDATE task SET version = ?, settings = ?, state = 'settling', priority = ?, urgency = ?, size = ?, alone = 0,
  attempts = 0, due = ?, failure = NULL, reason = ? WHERE file = ? AND processor = ?;

-- :name drop_history
-- The history of tasks that a file does not want any more.
DELETE FROM history WHERE task IN (SELECT id FROM task WHERE file = ? AND processor NOT IN (SELECT value FROM json_each(?)));

-- :name drop_tasks
-- Tasks that a file does not want any more.
DELETE FROM task WHERE file = ? AND processor NOT IN (SELECT value FROM json_each(?));

-- :name refresh_file
-- Only ctime or inode changed: the result serves, the content is verified some time.
UPDATE file SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, verify = 1, presence = 'present' WHERE id = ?;

-- :name refresh_tasks
-- New rights may free what was blocked for lack of them; a claim that reads under the old stamp is lost.
UPDATE task SET state = 'settling', attempts = 0, due = ?, failure = NULL, reason = 'permission or owner changed'
WHERE file = ? AND (state = 'blocked' AND failure = 'permission' OR id IN (SELECT task FROM claim));

-- :name return_file
-- A file that was gone is seen again.
UPDATE file SET presence = 'present' WHERE id = ?;

-- :name return_tasks
-- What was blocked because the file was gone passes the settle gate again.
UPDATE task SET state = 'settling', attempts = 0, due = ?, failure = NULL, reason = 'seen again'
WHERE file = ? AND state = 'blocked' AND failure = 'vanished';

-- :name unsettled
-- Files whose look is due.
SELECT f.id, d.path, f.name, f.size, f.mtime_ns, f.ctime_ns, f.inode, f.unsettled_since, f.moves
FROM (SELECT file FROM task WHERE state = 'settling' AND due <= ? ORDER BY due LIMIT ?) t
JOIN file f ON f.id = t.file JOIN directory d ON d.id = f.directory;

-- :name still_settling
-- Of looks [file, new stamp, must the stamp be the known one], the files that they still apply to.
SELECT f.id FROM json_each(?) j JOIN file f ON f.id = json_extract(j.value, '$[0]')
WHERE EXISTS (SELECT 1 FROM task t WHERE t.file = f.id AND t.state = 'settling')
  AND (NOT json_extract(j.value, '$[5]') OR f.size = json_extract(j.value, '$[1]')
    AND f.mtime_ns = json_extract(j.value, '$[2]') AND f.ctime_ns = json_extract(j.value, '$[3]')
    AND f.inode = json_extract(j.value, '$[4]'));

-- :name settle_file
-- A file that rests.
UPDATE file SET unsettled_since = 0, moves = 0 WHERE id = ?;

-- :name queue_settled
-- The tasks of a file that rests stand in the queue. To be run before `settle_tasks`.
INSERT INTO queue SELECT alone, priority, urgency, size, id FROM task WHERE file = ? AND state = 'settling';

-- :name settle_tasks
-- The tasks of a file that rests may be claimed.
UPDATE task SET state = 'ready', due = 0, reason = '' WHERE file = ? AND state = 'settling';

-- :name has_other_content
-- Whether a file's size or mtime is another one than these.
SELECT 1 FROM file WHERE id = ? AND (size <> ? OR mtime_ns <> ?);

-- :name restart_tasks
-- A file that was seen to change leads its other tasks back to the settle gate.
UPDATE task SET state = 'settling', alone = 0, attempts = 0, failure = NULL WHERE file = ? AND state <> 'settling';

-- :name move_file
-- A file that was seen to change, or could not be looked at.
UPDATE file SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, moves = moves + 1 WHERE id = ?;

-- :name move_tasks
-- The tasks of a file that changes wait for the next look.
UPDATE task SET due = ?, size = ?, reason = ? WHERE file = ? AND state = 'settling';

-- :name block_settling
-- A file that grows for ever or is gone.
UPDATE task SET state = 'blocked', due = 0, failure = ?, reason = ?, ended_wall_ns = ?
WHERE file = ? AND state = 'settling' RETURNING id;

-- :name suspect_file
-- A look did not find the file.
UPDATE file SET presence = 'suspected' WHERE id = ?;

-- :name next_change
-- The next change number.
UPDATE counter SET value = value + 1 WHERE name = 'change' RETURNING value;

-- :name held
-- Of [task, fence] pairs, the claims that the owner still holds.
SELECT c.task FROM json_each(?) j CROSS JOIN claim c ON c.task = json_extract(j.value, '$[0]')
WHERE c.fence = json_extract(j.value, '$[1]') AND c.owner = ?;

-- :name finish_task
-- The end of a claim that is held. A content that cannot be processed has no result, an earlier one's is not its.
UPDATE task SET state = ?, attempts = ?, fence = ?, due = ?, failure = ?, reason = ?, alone = ?, ended_wall_ns = ?,
  result = CASE WHEN ? THEN NULL ELSE coalesce(?, result) END, digest = coalesce(?, digest), change = coalesce(?, change) WHERE id = ?;

-- :name queue_task
-- A task that may be claimed again.
INSERT INTO queue SELECT alone, priority, urgency, size, id FROM task WHERE id = ?;

-- :name unclaim
-- Nobody holds this task any more.
DELETE FROM claim WHERE task = ?;

-- :name verify_files
-- The content of these files was read under their stamp of now.
UPDATE file SET verify = 0 WHERE verify = 1 AND id IN (SELECT value FROM json_each(?));

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

-- :name queue_failed
-- Failed tasks whose time has come stand in the queue. To be run before `wake_failed`.
INSERT INTO queue SELECT alone, priority, urgency, size, id FROM task WHERE state = 'failed' AND due <= ?;

-- :name wake_failed
-- Failed tasks whose time has come may be claimed again.
UPDATE task SET state = 'ready', due = 0 WHERE state = 'failed' AND due <= ?;

-- :name pick
-- The next tasks in order; those that may have killed a worker come last.
SELECT q.alone, q.priority, q.urgency, q.size, q.task, t.file, t.fence, d.path, f.name, f.kind,
  f.size, f.mtime_ns, f.ctime_ns, f.inode, t.processor, t.version, t.settings, t.attempts, t.digest
FROM queue q CROSS JOIN task t ON t.id = q.task JOIN file f ON f.id = t.file JOIN directory d ON d.id = f.directory
WHERE q.alone <= ? ORDER BY q.alone, q.priority, q.urgency, q.size, q.task LIMIT ?;

-- :name unqueue
-- A task leaves the queue.
DELETE FROM queue WHERE alone = ? AND priority = ? AND urgency = ? AND size = ? AND task = ?;

-- :name claim
-- Take a task: counted before work starts, under a new fence.
INSERT INTO claim (task, owner, fence, attempts, lease_end) VALUES (?, ?, ?, ?, ?);

-- :name renew
-- Move a lease end, if the claim is still held.
UPDATE claim SET lease_end = ? WHERE task = ? AND fence = ? AND owner = ?;

-- :name claiming_owners
-- Owners that hold claims.
SELECT DISTINCT owner FROM claim;

-- :name recover
-- Claims of dead owners and late ones go back, or are blocked when their attempts are used up.
UPDATE task SET state = CASE WHEN c.attempts >= :limit THEN 'blocked' ELSE 'ready' END,
  failure = CASE WHEN c.attempts >= :limit THEN 'crash' END,
  reason = CASE WHEN c.attempts >= :limit THEN 'each participant that took it died or stopped' ELSE reason END,
  ended_wall_ns = CASE WHEN c.attempts >= :limit THEN :wall ELSE ended_wall_ns END,
  attempts = c.attempts, fence = c.fence, alone = 1
FROM claim c WHERE c.task = task.id AND (c.lease_end <= :now OR c.owner IN (SELECT value FROM json_each(:dead)))
RETURNING id, file, state;

-- :name queue_recovered
-- What was taken back may be claimed again. To be run after `recover`.
INSERT INTO queue SELECT t.alone, t.priority, t.urgency, t.size, t.id FROM claim c CROSS JOIN task t ON t.id = c.task
WHERE t.state = 'ready' AND (c.lease_end <= :now OR c.owner IN (SELECT value FROM json_each(:dead)));

-- :name end_claims
-- Claims of dead owners and late ones end. To be run after `queue_recovered`.
DELETE FROM claim WHERE lease_end <= :now OR owner IN (SELECT value FROM json_each(:dead));

-- :name touch_file
-- What a searcher sees of the file changed.
UPDATE task SET change = ? WHERE file = ?;

-- :name backlog
-- How much is left, by state.
SELECT (SELECT count(*) FROM task WHERE state = 'settling'), (SELECT count(*) FROM queue),
  (SELECT count(*) FROM claim), (SELECT count(*) FROM task WHERE state = 'failed'),
  (SELECT count(*) FROM task t JOIN file f ON f.id = t.file
   WHERE t.state IN ('failed', 'blocked') AND t.state = 'blocked' AND f.presence = 'present');

-- :name count_moving
-- Files that were seen to change several times.
SELECT count(*) FROM file WHERE moves > 0 AND moves >= ?;

-- :name next_due
-- When the next look or attempt is due.
SELECT min(due) FROM (SELECT min(due) AS due FROM task WHERE state = 'settling'
  UNION ALL SELECT min(due) FROM task WHERE state = 'failed');

-- :name changes_after
-- Files whose searchable side changed, oldest change first; a file once, at the latest change of its tasks.
SELECT t.change, f.id, d.path, f.name, f.size, f.mtime_ns, f.ctime_ns, f.inode, f.presence,
  r.digest, r.processor, r.version, r.settings, r.pack, r.place, r.length, r.kind, r.title
FROM task t JOIN file f ON f.id = t.file JOIN directory d ON d.id = f.directory
LEFT JOIN result r ON r.id = (SELECT max(s.result) FROM task s WHERE s.file = f.id)
WHERE t.change > 0 AND (t.change, t.file) > (?, ?) AND NOT EXISTS (SELECT 1 FROM task s
  WHERE s.file = t.file AND (s.change > t.change OR s.change = t.change AND s.id < t.id))
ORDER BY t.change, t.file LIMIT ?;

-- :name count_states
-- Files and bytes by the state of the least finished task, and by folder.
WITH least AS (
  SELECT f.size AS size, f.folder AS folder, min(CASE t.state WHEN 'settling' THEN 0
    WHEN 'ready' THEN 1 + (t.id IN (SELECT task FROM claim))
    WHEN 'failed' THEN 3 WHEN 'blocked' THEN 4 WHEN 'skipped' THEN 5 ELSE 6 END) AS rank
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
SELECT f.id, f.kind, f.size, f.mtime_ns, f.ctime_ns, f.inode, f.presence,
  (SELECT digest FROM task WHERE file = f.id AND digest IS NOT NULL ORDER BY ended_wall_ns DESC LIMIT 1)
FROM directory d JOIN file f ON f.directory = d.id WHERE d.path = ? AND f.name = ?;

-- :name tasks_of
-- The tasks of a file.
SELECT t.processor, t.version, t.settings, CASE WHEN c.task IS NULL THEN t.state ELSE 'claimed' END,
  coalesce(c.attempts, t.attempts), t.failure, t.reason, c.owner, t.due, t.ended_wall_ns
FROM task t LEFT JOIN claim c ON c.task = t.id WHERE t.file = ? ORDER BY t.id;

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
-- Files that failed or are blocked, newest end first.
SELECT d.path, f.name FROM task t JOIN file f ON f.id = t.file JOIN directory d ON d.id = f.directory
WHERE t.state IN ('failed', 'blocked') AND NOT EXISTS (SELECT 1 FROM task s WHERE s.file = t.file
  AND s.state IN ('failed', 'blocked') AND (s.ended_wall_ns, s.id) > (t.ended_wall_ns, t.id))
ORDER BY t.ended_wall_ns DESC, t.id DESC LIMIT ?;

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
