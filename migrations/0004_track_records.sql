-- Track records of agents, one per capital mode, and their standings in each period. A row is a version: `block` is the one
-- it was computed at, `until` the block of the next version. A reorg deletes the versions of its blocks.
CREATE TABLE track_records (
  agent_id INTEGER NOT NULL,
  capital_mode INTEGER NOT NULL,
  block INTEGER NOT NULL,
  until INTEGER,
  record TEXT NOT NULL,
  PRIMARY KEY (agent_id, capital_mode, block)
) WITHOUT ROWID;
CREATE INDEX track_records_block ON track_records (block);
CREATE INDEX track_records_until ON track_records (until) WHERE until IS NOT NULL;

-- `by_…` ascends from the best to the worst agent. `start` is the first second of the period.
CREATE TABLE standings (
  agent_id INTEGER NOT NULL,
  capital_mode INTEGER NOT NULL,
  period TEXT NOT NULL,
  start INTEGER NOT NULL,
  block INTEGER NOT NULL,
  until INTEGER,
  vault TEXT NOT NULL,
  track INTEGER NOT NULL,
  trades INTEGER NOT NULL,
  by_return INTEGER NOT NULL,
  by_drawdown INTEGER NOT NULL,
  by_calmar INTEGER NOT NULL,
  by_sharpe INTEGER NOT NULL,
  figures TEXT NOT NULL,
  PRIMARY KEY (agent_id, capital_mode, period, start, block)
) WITHOUT ROWID;
CREATE INDEX standings_block ON standings (block);
CREATE INDEX standings_until ON standings (until) WHERE until IS NOT NULL;
CREATE INDEX standings_return ON standings (period, start, by_return, agent_id, capital_mode, block);
CREATE INDEX standings_drawdown ON standings (period, start, by_drawdown, agent_id, capital_mode, block);
CREATE INDEX standings_calmar ON standings (period, start, by_calmar, agent_id, capital_mode, block);
CREATE INDEX standings_sharpe ON standings (period, start, by_sharpe, agent_id, capital_mode, block);

-- One file for each week that ended and agent with an ERC-8004 identity: `content` is what is served, `hash` what is on chain.
-- `state` is pending, posted or skipped. Files are of final blocks, so no reorg changes them.
CREATE TABLE feedback (
  agent_id INTEGER NOT NULL,
  week_start INTEGER NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  erc8004_agent_id TEXT NOT NULL,
  value INTEGER NOT NULL,
  content TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_block INTEGER NOT NULL,
  PRIMARY KEY (agent_id, week_start)
) WITHOUT ROWID;
CREATE INDEX feedback_pending ON feedback (attempts, week_start) WHERE state = 'pending';

-- Agents whose samples a reorg has deleted, until they are sampled again.
CREATE TABLE unsampled (agent_id INTEGER PRIMARY KEY);

-- Every agent is sampled again, which computes the track records of an existing history.
DELETE FROM sampling;
