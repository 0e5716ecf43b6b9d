import type { Hex } from 'viem'
import { deployment } from './surfaces.ts'

/** What a stream says: dollars, and optionally a time (Unix seconds), a market status and a life. */
type Said = { usd?: string; observedAt?: number; marketStatus?: number; expiresAfterSeconds?: number }

const UNIT = 10n ** 18n

/** Returns the signed report of a token's first stream. */
async function ask(control: string, body?: object): Promise<Hex> {
  const { reports } = deployment
  if (reports === undefined) throw new Error('The embedded chain takes no prices from signed reports.')
  const response = await fetch(`${reports.url}/test/${control}`, {
    method: 'POST',
    ...(body && { body: JSON.stringify(body) }),
  })
  const { reports: signed = [] } = (await response.json()) as { reports?: { fullReport: Hex }[] }
  return signed[0]?.fullReport ?? '0x'
}

/** Controls the provider of signed reports of the embedded chain. */
export const reports = {
  /** Makes the stream of a token say something from now on, and returns the signed report that says it. */
  async say(symbol: string, { usd, ...said }: Said): Promise<Hex> {
    const price = usd === undefined ? {} : { price: `${BigInt(Math.round(Number(usd) * 1e6)) * (UNIT / 1_000_000n)}` }
    return ask(symbol, { ...said, ...price })
  },
  /** Returns the report that the stream of a token has now. */
  newest: (symbol: string): Promise<Hex> => ask(symbol),
  /** Makes the provider fail, or work again. */
  fail: (how?: 'down' | 'words' | 'silent' | 'stalled') => ask('failure', { how }),
  /** Returns how many connections are open, and how many requests there were. */
  async load(): Promise<{ connections: number; requests: number }> {
    const response = await fetch(`${deployment.reports?.url}/test/load`, { method: 'POST' })
    return (await response.json()) as { connections: number; requests: number }
  },
}
