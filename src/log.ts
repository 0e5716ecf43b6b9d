/** Writes one line for the operator. Facts are our own values: messages of errors can contain RPC URLs with API keys. */
export function logEvent(event: string, facts: Record<string, string | number> = {}): void {
  console.error(JSON.stringify({ level: 'error', event, ...facts }))
}
