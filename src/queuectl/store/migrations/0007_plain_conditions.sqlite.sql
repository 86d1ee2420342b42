-- Conditions without lists: SQLite builds a table for a list of three or more each time it evaluates one, and every
-- change of a job evaluates four of them. That was more than a quarter of what a claim and settle computed.
-- Beside this file: why PostgreSQL needs nothing.

-- A check is only text in the schema: what a row holds does not change, so the tables need not be written anew
-- (https://sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes"). The states that most moves
-- lead to come first.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
   SET sql = replace(replace(sql,
           'state IN
                          (''pending'', ''scheduled'', ''blocked'', ''processing'', ''completed'', ''failed'', ''dead'', ''cancelled'')',
           'state = ''pending'' OR state = ''processing'' OR state = ''completed'' OR state = ''scheduled''
                          OR state = ''blocked'' OR state = ''failed'' OR state = ''dead'' OR state = ''cancelled'''),
           'state IN (''completed'', ''dead'', ''cancelled'')',
           'state = ''completed'' OR state = ''dead'' OR state = ''cancelled''')
 WHERE type = 'table' AND name = 'jobs';
UPDATE sqlite_schema
   SET sql = replace(replace(sql,
           'kind IN (''ok'', ''any'', ''fail'')',
           'kind = ''ok'' OR kind = ''any'' OR kind = ''fail'''),
           'state IN (''waiting'', ''satisfied'', ''broken'')',
           'state = ''waiting'' OR state = ''satisfied'' OR state = ''broken''')
 WHERE type = 'table' AND name = 'edges';
PRAGMA writable_schema = RESET;

-- After the above: this also tells every other connection to read the schema anew.
DROP INDEX jobs_finished;
CREATE INDEX jobs_finished ON jobs (state, finished_at, lane_id)
    WHERE state = 'completed' OR state = 'dead' OR state = 'cancelled';

-- jobs_deadline keeps its list: it is looked at for jobs with a deadline alone, and supervisors of the schema before this
-- one, which go on until they are restarted, would walk the whole table for another spelling.
