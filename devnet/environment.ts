/** A TCP port from an environment variable; ends the script when it is set and is none. */
export function portFrom(name: string, otherwise: number): number {
  const port = Number(process.env[name] || otherwise)
  if (!Number.isInteger(port) || port < 1 || port > 65_535) exitWith(`${name} must be a port, not ${process.env[name]}`)
  return port
}

/** Ends a script with the sentence of an error, without its stack. */
export function exitWith(error: unknown): never {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}
