-- The block up to which the posted prices of past hours are down to the last one of each hour.
ALTER TABLE sampling ADD COLUMN prices_thinned_to INTEGER NOT NULL DEFAULT -1;

-- The caps of agents, without the other events of each agent.
CREATE INDEX events_caps ON events (agent_id, block, log_index) WHERE name IN ('AllocationCreated', 'AllocationCapUpdated');

-- Whether a position is closed, so that the open ones are read without all others. Triggers keep it: a range of blocks may have
-- both events, and a reorg may withdraw the second.
ALTER TABLE positions ADD COLUMN is_closed INTEGER NOT NULL DEFAULT 0;
UPDATE positions SET is_closed = 1 WHERE EXISTS (
  SELECT 1 FROM trades INDEXED BY trades_closed
  WHERE trades.agent_id = positions.agent_id AND trades.position_id = positions.position_id AND type = 'PositionClosed');
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
