/** A TCP port from an environment variable; throws when it is set and is none. */
export function portFrom(name: string, otherwise: number): number {
  const port = Number(process.env[name] || otherwise)
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Error(`${name} must be a port, not ${process.env[name]}`)
  return port
}
