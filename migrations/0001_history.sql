-- Chain events by their position: block and log index. Rows are added, and a reorg deletes those above the common ancestor,
-- so no state can disagree with the events it comes from. Amounts are stored as digits.

-- One row: the block up to which the index is complete, and the chain and contracts that it is of (scope). It moves in the
-- same transaction as the rows. Posted prices up to the block `candles_to` are in the candles. `branch` has the number and hash
-- of blocks that a reorg could still replace, newest first, as JSON: those that the cursor stopped at or that rows belong to.
CREATE TABLE cursor (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  scope TEXT NOT NULL,
  block INTEGER NOT NULL,
  hash TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  head INTEGER NOT NULL,
  final INTEGER NOT NULL,
  branch TEXT NOT NULL,
  candles_to INTEGER NOT NULL DEFAULT -1
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

-- A sale that closes its position has the PnL of the whole position. `oracle_value_usdc` is what the tokens were worth at the
-- last price posted up to the end of the block; NULL without one. `capital_mode` is as the contracts number it; NULL where a
-- deployment has no capital modes. `book` is what the agent's trades
-- add up to after this one (`packages/protocol/src/agent-book.ts`), so its equity at any time follows from one row and prices.
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
  position_pnl_usdc TEXT,
  oracle_value_usdc TEXT,
  exit_bps INTEGER,
  rule_index INTEGER,
  trigger_type INTEGER,
  trigger_bps INTEGER,
  transaction_hash TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  book TEXT NOT NULL,
  PRIMARY KEY (agent_id, block, log_index)
) WITHOUT ROWID;
CREATE INDEX trades_place ON trades (block, log_index);
CREATE INDEX trades_position ON trades (agent_id, position_id, block, log_index);
CREATE INDEX trades_time ON trades (agent_id, timestamp);
CREATE INDEX trades_closed ON trades (agent_id, position_id) WHERE position_pnl_usdc IS NOT NULL;

-- What signers said about their trades, by the transaction that executes the intent. They are not on the chain, so no reorg and no
-- replay of the index deletes them.
CREATE TABLE notes (
  transaction_hash TEXT PRIMARY KEY,
  note TEXT NOT NULL
) WITHOUT ROWID;

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
CREATE INDEX positions_open ON positions (agent_id, position_id) WHERE is_closed = 0;

CREATE TRIGGER position_closed AFTER INSERT ON trades WHEN NEW.position_pnl_usdc IS NOT NULL BEGIN
  UPDATE positions SET is_closed = 1 WHERE position_id = NEW.position_id;
END;
CREATE TRIGGER position_reopened AFTER DELETE ON trades WHEN OLD.position_pnl_usdc IS NOT NULL BEGIN
  UPDATE positions SET is_closed = 0 WHERE position_id = OLD.position_id;
END;
CREATE TRIGGER closed_position_inserted AFTER INSERT ON positions WHEN EXISTS (
  SELECT 1 FROM trades INDEXED BY trades_closed
  WHERE agent_id = NEW.agent_id AND position_id = NEW.position_id AND position_pnl_usdc IS NOT NULL) BEGIN
  UPDATE positions SET is_closed = 1 WHERE position_id = NEW.position_id;
END;

-- Every version of an agent. `until` is the block of the next version; the current version has none. It is `given` while its
-- owner, who got it by a transfer that needs no consent, has neither accepted it nor sent a message for it.
CREATE TABLE agents (
  agent_id INTEGER NOT NULL,
  block INTEGER NOT NULL,
  log_index INTEGER NOT NULL,
  until INTEGER,
  owner TEXT NOT NULL,
  vault TEXT NOT NULL,
  track INTEGER NOT NULL,
  status INTEGER NOT NULL,
  given INTEGER NOT NULL,
  timestamp INTEGER NOT NULL,
  PRIMARY KEY (agent_id, block, log_index)
) WITHOUT ROWID;
CREATE INDEX agents_block ON agents (block);
CREATE INDEX agents_until ON agents (until) WHERE until IS NOT NULL;
CREATE INDEX agents_owner ON agents (owner, given, agent_id) WHERE until IS NULL;
-- The current versions, one index for each set of filters of their list.
CREATE INDEX agents_now ON agents (agent_id) WHERE until IS NULL;
CREATE INDEX agents_status ON agents (status, agent_id) WHERE until IS NULL;
CREATE INDEX agents_track ON agents (track, status, agent_id) WHERE until IS NULL;
CREATE INDEX agents_track_now ON agents (track, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault ON agents (vault, track, status, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_now ON agents (vault, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_status ON agents (vault, status, agent_id) WHERE until IS NULL;
CREATE INDEX agents_vault_track ON agents (vault, track, agent_id) WHERE until IS NULL;

-- What the names of agents are found by: their text from each word on, in lower case.
CREATE TABLE agent_names (
  word TEXT NOT NULL,
  agent_id INTEGER NOT NULL,
  block INTEGER NOT NULL,
  PRIMARY KEY (word, agent_id)
) WITHOUT ROWID;
CREATE INDEX agent_names_block ON agent_names (block);

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

-- The final posts of each hour and day (`seconds` long, from `start`), added up. `last_block` has the last of them, which was
-- observed at `observed_at`.
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
  observed_at INTEGER NOT NULL,
  PRIMARY KEY (token, seconds, start)
) WITHOUT ROWID;

-- Orders as they were placed: `content` is the order as JSON with integers as digits. Triggers keep `is_ended`, as those of
-- positions keep `is_closed`.
CREATE TABLE orders (
  block INTEGER NOT NULL,
  log_index INTEGER NOT NULL,
  order_id TEXT NOT NULL,
  agent_id INTEGER NOT NULL,
  content TEXT NOT NULL,
  parts INTEGER NOT NULL,
  transaction_hash TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  is_ended INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (block, log_index)
) WITHOUT ROWID;
CREATE UNIQUE INDEX orders_id ON orders (order_id);
CREATE INDEX orders_open ON orders (agent_id, block, log_index) WHERE is_ended = 0;
CREATE INDEX orders_ended ON orders (agent_id, block, log_index) WHERE is_ended = 1;

-- All other followed events of registries, allocations, vaults and order books. `args` is JSON with integers as digits.
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
-- The caps and promotions of agents, without the other events of each agent.
CREATE INDEX events_caps ON events (agent_id, block, log_index)
  WHERE name IN ('AllocationCreated', 'AllocationCapUpdated', 'AgentPromoted');
-- What became of each order.
CREATE INDEX events_order ON events (args ->> 'orderId', block, log_index)
  WHERE name IN ('OrderExecuted', 'OrderEnded');

-- Orders are inserted before the events of the same blocks, so an event finds its order.
CREATE TRIGGER order_ended AFTER INSERT ON events WHEN NEW.name IN ('OrderExecuted', 'OrderEnded') BEGIN
  UPDATE orders SET is_ended = 1 WHERE order_id = NEW.args ->> 'orderId'
    AND (NEW.name = 'OrderEnded' OR parts = CAST(NEW.args ->> 'part' AS INTEGER));
END;
CREATE TRIGGER order_reopened AFTER DELETE ON events WHEN OLD.name IN ('OrderExecuted', 'OrderEnded') BEGIN
  UPDATE orders SET is_ended = 0 WHERE order_id = OLD.args ->> 'orderId'
    AND (OLD.name = 'OrderEnded' OR parts = CAST(OLD.args ->> 'part' AS INTEGER));
END;

-- A new order book voids the orders of the one before.
CREATE TRIGGER orders_voided AFTER INSERT ON events WHEN NEW.name = 'OrderBookUpdated' BEGIN
  UPDATE orders SET is_ended = 1 WHERE is_ended = 0 AND (block, log_index) < (NEW.block, NEW.log_index);
END;
CREATE TRIGGER orders_revived AFTER DELETE ON events WHEN OLD.name = 'OrderBookUpdated' BEGIN
  UPDATE orders SET is_ended = 0 WHERE is_ended = 1 AND (block, log_index) < (OLD.block, OLD.log_index) AND NOT EXISTS (
    SELECT 1 FROM events WHERE name IN ('OrderExecuted', 'OrderEnded') AND args ->> 'orderId' = order_id
      AND (name = 'OrderEnded' OR parts = CAST(args ->> 'part' AS INTEGER)));
END;

-- What all final trades before an hour add up to, in one pass over all agents: `content` has many records as JSON, split into
-- parts. Up to `from_block`, every trade is in them. `block` is the final block that showed that the hour before was over: a
-- rollback below it deletes the row. The newest versions stay, so that all pages of a read show one block.
CREATE TABLE track_records (
  hour INTEGER NOT NULL,
  part INTEGER NOT NULL,
  from_block INTEGER NOT NULL,
  block INTEGER NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (hour, part)
) WITHOUT ROWID;

-- The results of all agents in each period that has ended, written once by that pass. `hour` is that of its track records.
CREATE TABLE standings (
  period TEXT NOT NULL,
  start INTEGER NOT NULL,
  part INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  block INTEGER NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (period, start, part)
) WITHOUT ROWID;

-- What a vault's final events and trades add up to at the end of each hour with one of them, from the same pass. `book` is as in
-- `packages/protocol/src/vault-book.ts`, `changed_block` the block of the last of them.
CREATE TABLE vault_books (
  vault TEXT NOT NULL,
  hour INTEGER NOT NULL,
  changed_block INTEGER NOT NULL,
  block INTEGER NOT NULL,
  book TEXT NOT NULL,
  PRIMARY KEY (vault, hour)
) WITHOUT ROWID;

-- One file for each week that ended and agent with an ERC-8004 identity: `content` is what is served, `hash` what is on chain.
-- `state` is ended (no file yet, and `content` is the result), pending, posted or skipped. Files are of final blocks, so no reorg
-- changes them.
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
CREATE INDEX feedback_ended ON feedback (week_start, agent_id) WHERE state = 'ended';
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

-- How many agents each owner has now, without those that it was only given.
CREATE TABLE owner_agents (
  owner TEXT PRIMARY KEY,
  agents INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER agents_inserted AFTER INSERT ON agents WHEN NEW.until IS NULL BEGIN
  INSERT INTO vault_agents (vault, status, agents) VALUES (NEW.vault, NEW.status, 1)
    ON CONFLICT (vault, status) DO UPDATE SET agents = agents + 1;
  INSERT INTO owner_agents (owner, agents) VALUES (NEW.owner, 1 - NEW.given)
    ON CONFLICT (owner) DO UPDATE SET agents = agents + 1 - NEW.given;
END;
CREATE TRIGGER agents_restored AFTER UPDATE OF until ON agents WHEN OLD.until IS NOT NULL AND NEW.until IS NULL BEGIN
  INSERT INTO vault_agents (vault, status, agents) VALUES (NEW.vault, NEW.status, 1)
    ON CONFLICT (vault, status) DO UPDATE SET agents = agents + 1;
  INSERT INTO owner_agents (owner, agents) VALUES (NEW.owner, 1 - NEW.given)
    ON CONFLICT (owner) DO UPDATE SET agents = agents + 1 - NEW.given;
END;
CREATE TRIGGER agents_ended AFTER UPDATE OF until ON agents WHEN OLD.until IS NULL AND NEW.until IS NOT NULL BEGIN
  UPDATE vault_agents SET agents = agents - 1 WHERE vault = OLD.vault AND status = OLD.status;
  UPDATE owner_agents SET agents = agents - 1 + OLD.given WHERE owner = OLD.owner;
END;
CREATE TRIGGER agents_deleted AFTER DELETE ON agents WHEN OLD.until IS NULL BEGIN
  UPDATE vault_agents SET agents = agents - 1 WHERE vault = OLD.vault AND status = OLD.status;
  UPDATE owner_agents SET agents = agents - 1 + OLD.given WHERE owner = OLD.owner;
END;

-- What the open positions of each vault's agents cost, in USDC base units, without those on paper (capital_mode 0): as its caps.
CREATE TABLE vault_use (
  vault TEXT PRIMARY KEY,
  used INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER trade_inserted AFTER INSERT ON trades WHEN NEW.usdc_amount IS NOT NULL AND NEW.capital_mode IS NOT 0 BEGIN
  INSERT INTO vault_use (vault, used)
    VALUES (NEW.vault, CAST(NEW.usdc_amount AS INTEGER) * iif(NEW.type IN ('PositionOpened', 'PositionIncreased'), 1, -1)
      + CAST(coalesce(NEW.realized_pnl_usdc, 0) AS INTEGER))
    ON CONFLICT (vault) DO UPDATE SET used = used + excluded.used;
END;
CREATE TRIGGER trade_deleted AFTER DELETE ON trades WHEN OLD.usdc_amount IS NOT NULL AND OLD.capital_mode IS NOT 0 BEGIN
  UPDATE vault_use SET used = used - CAST(OLD.usdc_amount AS INTEGER) * iif(OLD.type IN ('PositionOpened', 'PositionIncreased'), 1, -1)
      - CAST(coalesce(OLD.realized_pnl_usdc, 0) AS INTEGER)
    WHERE vault = OLD.vault;
END;
