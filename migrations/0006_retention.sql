-- The block up to which the posted prices of past hours are down to the last one of each hour.
ALTER TABLE sampling ADD COLUMN prices_thinned_to INTEGER NOT NULL DEFAULT -1;

-- The caps of agents, without the other events of each agent.
CREATE INDEX events_caps ON events (agent_id, block, log_index) WHERE name IN ('AllocationCreated', 'AllocationCapUpdated');
