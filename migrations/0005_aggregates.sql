-- Counts and sums over all agents, so that no read has to visit each of them. Triggers keep them: they change in the
-- transaction of the rows they are about, and what a reorg deletes or restores is taken back or added again.

-- How many agents each vault has in each status now.
CREATE TABLE vault_agents (
  vault TEXT NOT NULL,
  status INTEGER NOT NULL,
  agents INTEGER NOT NULL,
  PRIMARY KEY (vault, status)
) WITHOUT ROWID;
INSERT INTO vault_agents SELECT vault, status, count(*) FROM agents WHERE until IS NULL GROUP BY vault, status;

-- How many agents each owner has now.
CREATE TABLE owner_agents (
  owner TEXT PRIMARY KEY,
  agents INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO owner_agents SELECT owner, count(*) FROM agents WHERE until IS NULL GROUP BY owner;

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
INSERT INTO vault_use SELECT vault, sum(CAST(used AS INTEGER)) FROM equity WHERE until IS NULL GROUP BY vault;

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

-- The agents to sample in a new quarter of an hour, in the order of their pages.
DROP INDEX equity_open;
CREATE INDEX equity_open ON equity (agent_id, timestamp) WHERE until IS NULL AND open_count > 0;

-- The block up to which the samples of each past day are down to its last one.
ALTER TABLE sampling ADD COLUMN thinned_to INTEGER NOT NULL DEFAULT -1;
