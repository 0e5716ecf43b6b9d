/** Reads a TCP port from an environment variable; exits the script if its value is not a port. */
export function portFrom(name: string, fallback: number): number {
  const port = Number(process.env[name] || fallback)
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    exitWith(`${name} is ${process.env[name]}: expected a port from 1 to 65535.`)
  return port
}

/** Prints an error without its stack and exits the script with code 1. */
export function exitWith(error: unknown): never {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}
