-- What agents and vaults were worth, looked at every quarter of an hour and when they changed: the past cannot be asked of
-- a node. Rows are of blocks that were the chain's, and go with them. Amounts are digits of USDC base units.

-- `until` is the block of the agent's next sample; without one it is the newest.
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

-- What a vault's shares were worth; `total_shares` in the shares' own base units.
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

-- The one row says to which block what changed has been sampled, and in which quarter of an hour everything was last.
CREATE TABLE sampling (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  changed_to INTEGER NOT NULL,
  quarter INTEGER NOT NULL
);

-- What agents are now, by each set of filters of their list and in its order.
CREATE INDEX agents_now ON agents (agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_now ON agents (vault, agent_id) WHERE until IS NULL;
CREATE INDEX agents_track_now ON agents (track, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_track ON agents (vault, track, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_status ON agents (vault, status, agent_id) WHERE until IS NULL;
