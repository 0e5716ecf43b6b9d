-- Chain events by their position: block and log index. Rows are added, and a reorg deletes those above the common ancestor,
-- so no state can disagree with the events it comes from. Amounts are stored as digits.

-- One row: the block up to which the index is complete, and the chain and contracts that it is of (scope). It moves in the
-- same transaction as the rows. Posted prices up to the block `candles_to` are in the candles.
CREATE TABLE cursor (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  scope TEXT NOT NULL,
  block INTEGER NOT NULL,
  hash TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  head INTEGER NOT NULL,
  final INTEGER NOT NULL,
  candles_to INTEGER NOT NULL DEFAULT -1
);

-- The blocks that a reorg could still replace: those that rows belong to, and those that the cursor stopped at.
CREATE TABLE blocks (
  number INTEGER PRIMARY KEY,
  hash TEXT NOT NULL
);

-- Each reorg: the rows above `ancestor` were deleted. `lost` was the cursor.
CREATE TABLE reorgs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  ancestor INTEGER NOT NULL,
  ancestor_hash TEXT NOT NULL,
  lost INTEGER NOT NULL,
  lost_hash TEXT NOT NULL,
  at INTEGER NOT NULL
);

-- `capital_mode` is as the contracts number it; NULL where a deployment has no capital modes.
CREATE TABLE trades (
  agent_id INTEGER NOT NULL,
  block INTEGER NOT NULL,
  log_index INTEGER NOT NULL,
  position_id INTEGER NOT NULL,
  type TEXT NOT NULL,
  source TEXT NOT NULL,
  token TEXT NOT NULL,
  vault TEXT NOT NULL,
  capital_mode INTEGER,
  usdc_amount TEXT,
  token_amount TEXT,
  price_usdc TEXT,
  realized_pnl_usdc TEXT,
  exit_bps INTEGER,
  rule_index INTEGER,
  trigger_type INTEGER,
  trigger_bps INTEGER,
  transaction_hash TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  PRIMARY KEY (agent_id, block, log_index)
) WITHOUT ROWID;
CREATE INDEX trades_place ON trades (block, log_index);
CREATE INDEX trades_position ON trades (agent_id, position_id, block, log_index);
CREATE INDEX trades_type ON trades (agent_id, type, block, log_index);
CREATE INDEX trades_token ON trades (agent_id, token, block, log_index);
CREATE INDEX trades_token_type ON trades (agent_id, token, type, block, log_index);
CREATE INDEX trades_closed ON trades (agent_id, position_id) WHERE type = 'PositionClosed';

-- Trades above the cursor, from receipts of the service's own transactions. They are deleted once the cursor reaches them.
CREATE TABLE relayed (
  agent_id INTEGER NOT NULL,
  block INTEGER NOT NULL,
  log_index INTEGER NOT NULL,
  block_hash TEXT NOT NULL,
  trade TEXT NOT NULL,
  PRIMARY KEY (agent_id, block, log_index)
) WITHOUT ROWID;
CREATE INDEX relayed_block ON relayed (block);

-- `is_closed` is so that the open positions are read without all others. Triggers keep it: a range of blocks may have both
-- events, and a reorg may withdraw the second.
CREATE TABLE positions (
  position_id INTEGER PRIMARY KEY,
  agent_id INTEGER NOT NULL,
  vault TEXT NOT NULL,
  token TEXT NOT NULL,
  capital_mode INTEGER,
  block INTEGER NOT NULL,
  opened_at INTEGER NOT NULL,
  is_closed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX positions_block ON positions (block);
CREATE INDEX positions_open ON positions (position_id) WHERE is_closed = 0;

CREATE TRIGGER position_closed AFTER INSERT ON trades WHEN NEW.type = 'PositionClosed' BEGIN
  UPDATE positions SET is_closed = 1 WHERE position_id = NEW.position_id;
END;
CREATE TRIGGER position_reopened AFTER DELETE ON trades WHEN OLD.type = 'PositionClosed' BEGIN
  UPDATE positions SET is_closed = 0 WHERE position_id = OLD.position_id;
END;
CREATE TRIGGER closed_position_inserted AFTER INSERT ON positions WHEN EXISTS (
  SELECT 1 FROM trades INDEXED BY trades_closed
  WHERE agent_id = NEW.agent_id AND position_id = NEW.position_id AND type = 'PositionClosed') BEGIN
  UPDATE positions SET is_closed = 1 WHERE position_id = NEW.position_id;
END;

-- Every version of an agent. `until` is the block of the next version; the current version has none.
CREATE TABLE agents (
  agent_id INTEGER NOT NULL,
  block INTEGER NOT NULL,
  log_index INTEGER NOT NULL,
  until INTEGER,
  owner TEXT NOT NULL,
  vault TEXT NOT NULL,
  track INTEGER NOT NULL,
  status INTEGER NOT NULL,
  timestamp INTEGER NOT NULL,
  PRIMARY KEY (agent_id, block, log_index)
) WITHOUT ROWID;
CREATE INDEX agents_block ON agents (block);
CREATE INDEX agents_until ON agents (until) WHERE until IS NOT NULL;
CREATE INDEX agents_owner ON agents (owner, agent_id) WHERE until IS NULL;
-- The current versions, one index for each set of filters of their list.
CREATE INDEX agents_now ON agents (agent_id) WHERE until IS NULL;
CREATE INDEX agents_status ON agents (status, agent_id) WHERE until IS NULL;
CREATE INDEX agents_track ON agents (track, status, agent_id) WHERE until IS NULL;
CREATE INDEX agents_track_now ON agents (track, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault ON agents (vault, track, status, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_now ON agents (vault, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_status ON agents (vault, status, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_track ON agents (vault, track, agent_id) WHERE until IS NULL;

CREATE TABLE prices (
  token TEXT NOT NULL,
  block INTEGER NOT NULL,
  log_index INTEGER NOT NULL,
  price TEXT NOT NULL,
  observed_at INTEGER NOT NULL,
  timestamp INTEGER NOT NULL,
  PRIMARY KEY (token, block, log_index)
) WITHOUT ROWID;
CREATE INDEX prices_block ON prices (block);

-- The final posts of each hour and day (`seconds` long, from `start`), added up. `last_block` has the last of them.
CREATE TABLE candles (
  token TEXT NOT NULL,
  seconds INTEGER NOT NULL,
  start INTEGER NOT NULL,
  open TEXT NOT NULL,
  high TEXT NOT NULL,
  low TEXT NOT NULL,
  close TEXT NOT NULL,
  posts INTEGER NOT NULL,
  last_block INTEGER NOT NULL,
  PRIMARY KEY (token, seconds, start)
) WITHOUT ROWID;

-- All other followed events of registries, allocations and vaults. `args` is JSON with integers as digits.
CREATE TABLE events (
  block INTEGER NOT NULL,
  log_index INTEGER NOT NULL,
  contract TEXT NOT NULL,
  name TEXT NOT NULL,
  agent_id INTEGER,
  args TEXT NOT NULL,
  transaction_hash TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  PRIMARY KEY (block, log_index)
) WITHOUT ROWID;
CREATE INDEX events_agent ON events (agent_id, block, log_index) WHERE agent_id IS NOT NULL;
CREATE INDEX events_contract ON events (contract, name, block, log_index);
-- The caps of agents, without the other events of each agent.
CREATE INDEX events_caps ON events (agent_id, block, log_index) WHERE name IN ('AllocationCreated', 'AllocationCapUpdated');

-- Samples of agents and vaults, taken every quarter of an hour and after each change, because nodes do not serve old states.
-- A reorg deletes the samples of its blocks. Amounts are digits of USDC base units.

-- `until` is the block of the agent's next sample; the newest sample has none.
CREATE TABLE equity (
  agent_id INTEGER NOT NULL,
  timestamp INTEGER NOT NULL,
  block INTEGER NOT NULL,
  until INTEGER,
  vault TEXT NOT NULL,
  cap TEXT NOT NULL,
  used TEXT NOT NULL,
  equity TEXT NOT NULL,
  realized TEXT NOT NULL,
  unrealized TEXT NOT NULL,
  drawdown_bps INTEGER NOT NULL,
  open_count INTEGER NOT NULL,
  stale INTEGER NOT NULL,
  PRIMARY KEY (agent_id, timestamp, block)
) WITHOUT ROWID;
CREATE INDEX equity_block ON equity (block);
CREATE INDEX equity_until ON equity (until) WHERE until IS NOT NULL;
CREATE INDEX equity_newest ON equity (agent_id) WHERE until IS NULL;
-- The agents to sample in a new quarter of an hour, in the order of their pages.
CREATE INDEX equity_open ON equity (agent_id, timestamp) WHERE until IS NULL AND open_count > 0;

-- `total_shares` is in base units of the shares.
CREATE TABLE vault_worth (
  vault TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  block INTEGER NOT NULL,
  total_assets TEXT NOT NULL,
  idle_assets TEXT NOT NULL,
  total_shares TEXT NOT NULL,
  share_price TEXT NOT NULL,
  PRIMARY KEY (vault, timestamp, block)
) WITHOUT ROWID;
CREATE INDEX vault_worth_block ON vault_worth (block);

-- One row: the block up to which changes have been sampled, the last quarter of an hour in which everything was, and the blocks
-- up to which the samples of each past day and the posted prices of each past hour are down to their last one.
CREATE TABLE sampling (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  changed_to INTEGER NOT NULL,
  quarter INTEGER NOT NULL,
  thinned_to INTEGER NOT NULL DEFAULT -1,
  prices_thinned_to INTEGER NOT NULL DEFAULT -1
);

-- Agents whose samples a reorg has deleted, until they are sampled again.
CREATE TABLE unsampled (agent_id INTEGER PRIMARY KEY);

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

-- Counts and sums over all agents, so that no read has to visit each of them. Triggers keep them: they change in the
-- transaction of the rows they are about, and what a reorg deletes or restores is taken back or added again.

-- How many agents each vault has in each status now.
CREATE TABLE vault_agents (
  vault TEXT NOT NULL,
  status INTEGER NOT NULL,
  agents INTEGER NOT NULL,
  PRIMARY KEY (vault, status)
) WITHOUT ROWID;

-- How many agents each owner has now.
CREATE TABLE owner_agents (
  owner TEXT PRIMARY KEY,
  agents INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER agents_inserted AFTER INSERT ON agents WHEN NEW.until IS NULL BEGIN
  INSERT INTO vault_agents (vault, status, agents) VALUES (NEW.vault, NEW.status, 1)
    ON CONFLICT (vault, status) DO UPDATE SET agents = agents + 1;
  INSERT INTO owner_agents (owner, agents) VALUES (NEW.owner, 1) ON CONFLICT (owner) DO UPDATE SET agents = agents + 1;
END;
CREATE TRIGGER agents_restored AFTER UPDATE OF until ON agents WHEN OLD.until IS NOT NULL AND NEW.until IS NULL BEGIN
  INSERT INTO vault_agents (vault, status, agents) VALUES (NEW.vault, NEW.status, 1)
    ON CONFLICT (vault, status) DO UPDATE SET agents = agents + 1;
  INSERT INTO owner_agents (owner, agents) VALUES (NEW.owner, 1) ON CONFLICT (owner) DO UPDATE SET agents = agents + 1;
END;
CREATE TRIGGER agents_ended AFTER UPDATE OF until ON agents WHEN OLD.until IS NULL AND NEW.until IS NOT NULL BEGIN
  UPDATE vault_agents SET agents = agents - 1 WHERE vault = OLD.vault AND status = OLD.status;
  UPDATE owner_agents SET agents = agents - 1 WHERE owner = OLD.owner;
END;
CREATE TRIGGER agents_deleted AFTER DELETE ON agents WHEN OLD.until IS NULL BEGIN
  UPDATE vault_agents SET agents = agents - 1 WHERE vault = OLD.vault AND status = OLD.status;
  UPDATE owner_agents SET agents = agents - 1 WHERE owner = OLD.owner;
END;

-- What the agents of each vault use of their caps, as of their newest samples; USDC base units.
CREATE TABLE vault_use (
  vault TEXT PRIMARY KEY,
  used INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER equity_inserted AFTER INSERT ON equity WHEN NEW.until IS NULL AND NEW.used <> '0' BEGIN
  INSERT INTO vault_use (vault, used) VALUES (NEW.vault, CAST(NEW.used AS INTEGER))
    ON CONFLICT (vault) DO UPDATE SET used = used + excluded.used;
END;
CREATE TRIGGER equity_restored AFTER UPDATE OF until ON equity
  WHEN OLD.until IS NOT NULL AND NEW.until IS NULL AND NEW.used <> '0' BEGIN
  INSERT INTO vault_use (vault, used) VALUES (NEW.vault, CAST(NEW.used AS INTEGER))
    ON CONFLICT (vault) DO UPDATE SET used = used + excluded.used;
END;
CREATE TRIGGER equity_ended AFTER UPDATE OF until ON equity
  WHEN OLD.until IS NULL AND NEW.until IS NOT NULL AND OLD.used <> '0' BEGIN
  UPDATE vault_use SET used = used - CAST(OLD.used AS INTEGER) WHERE vault = OLD.vault;
END;
CREATE TRIGGER equity_deleted AFTER DELETE ON equity WHEN OLD.until IS NULL AND OLD.used <> '0' BEGIN
  UPDATE vault_use SET used = used - CAST(OLD.used AS INTEGER) WHERE vault = OLD.vault;
END;
