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
CREATE INDEX equity_open ON equity (vault, agent_id, used) WHERE until IS NULL AND open_count > 0;

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

-- One row: the block up to which changes have been sampled, and the last quarter of an hour in which everything was.
CREATE TABLE sampling (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  changed_to INTEGER NOT NULL,
  quarter INTEGER NOT NULL
);

-- The current versions of agents, one index for each set of filters of their list.
CREATE INDEX agents_now ON agents (agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_now ON agents (vault, agent_id) WHERE until IS NULL;
CREATE INDEX agents_track_now ON agents (track, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_track ON agents (vault, track, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_status ON agents (vault, status, agent_id) WHERE until IS NULL;
