-- The capital of positions and their trades, as the contracts number it; NULL where a deployment has no capital modes.
ALTER TABLE trades ADD COLUMN capital_mode INTEGER;
ALTER TABLE positions ADD COLUMN capital_mode INTEGER;
