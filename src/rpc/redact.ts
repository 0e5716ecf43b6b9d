const MAX_LENGTH = 200

/** Returns a node's text without URLs (they can contain API keys) and long hex data, cut to 200 characters. */
export function redact(message: string): string {
  const safe = message.replaceAll(/https?:\/\/\S+/gi, '<url>').replaceAll(/(0x)?[0-9a-f]{64,}/gi, '<data>')
  return safe.length > MAX_LENGTH ? `${safe.slice(0, MAX_LENGTH)}…` : safe
}
