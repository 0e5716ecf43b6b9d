-- What happened on the chain, by its place there: block and log index. Rows are only added, and taken back from a block on
-- when the chain takes it back: there is no state that could disagree with the events it comes from. Amounts are digits.

-- The one row says to which block everything is here, and of which contracts. It moves in the transaction of its rows.
CREATE TABLE cursor (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  scope TEXT NOT NULL,
  block INTEGER NOT NULL,
  hash TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  head INTEGER NOT NULL,
  final INTEGER NOT NULL
);

-- Hashes of blocks that can still be taken back: those that rows are of, and those that the cursor stood at.
CREATE TABLE blocks (
  number INTEGER PRIMARY KEY,
  hash TEXT NOT NULL
);

-- Each time that the chain took blocks back: rows above `ancestor` were withdrawn.
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

-- Trades from receipts of the service's own transactions, beyond the cursor: gone when the cursor comes by.
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

-- What an agent was from a place on. `until` is the block of the next such row; without one it is what the agent is.
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

-- Every other event of registries, allocations and vaults; `args` is JSON with integers as digits.
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
