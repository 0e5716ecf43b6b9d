const PREFIX = 'whsec_'
const SECRET_BYTES = 32

/** Returns a new signing secret as Standard Webhooks writes it: `whsec_` and 32 random bytes in base64. */
export const createSecret = (): string => PREFIX + toBase64(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)))

/**
 * Returns the header `webhook-signature`: for each secret `v1,` and the HMAC-SHA256 of `<id>.<timestamp>.<body>` in base64,
 * separated by spaces (Standard Webhooks 1.0.0). `timestamp` is in Unix seconds.
 */
export async function signDelivery(
  secrets: readonly string[],
  { id, timestamp, body }: { id: string; timestamp: number; body: string },
): Promise<string> {
  const content = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  const signatures = await Promise.all(
    secrets.map(async secret => {
      const bytes = Uint8Array.from(atob(secret.slice(PREFIX.length)), character => character.charCodeAt(0))
      const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
      return `v1,${toBase64(new Uint8Array(await crypto.subtle.sign('HMAC', key, content)))}`
    }),
  )
  return signatures.join(' ')
}

const toBase64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes))
