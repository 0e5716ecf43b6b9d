-- Chain events by their position: block and log index. Rows are added, and a reorg deletes those above the common ancestor,
-- so no state can disagree with the events it comes from. Amounts are stored as digits.

-- One row: the block up to which the index is complete, and the chain and contracts that it is of (scope). It moves in the
-- same transaction as the rows.
CREATE TABLE cursor (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  scope TEXT NOT NULL,
  block INTEGER NOT NULL,
  hash TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  head INTEGER NOT NULL,
  final INTEGER NOT NULL
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

CREATE TABLE trades (
  agent_id INTEGER NOT NULL,
  block INTEGER NOT NULL,
  log_index INTEGER NOT NULL,
  position_id INTEGER NOT NULL,
  type TEXT NOT NULL,
  source TEXT NOT NULL,
  token TEXT NOT NULL,
  vault TEXT NOT NULL,
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

CREATE TABLE positions (
  position_id INTEGER PRIMARY KEY,
  agent_id INTEGER NOT NULL,
  vault TEXT NOT NULL,
  token TEXT NOT NULL,
  block INTEGER NOT NULL,
  opened_at INTEGER NOT NULL
);
CREATE INDEX positions_block ON positions (block);

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
CREATE INDEX agents_vault ON agents (vault, track, status, agent_id) WHERE until IS NULL;
CREATE INDEX agents_track ON agents (track, status, agent_id) WHERE until IS NULL;
CREATE INDEX agents_status ON agents (status, agent_id) WHERE until IS NULL;

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
