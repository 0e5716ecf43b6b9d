import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { Body } from './body.ts'

/**
 * What an agent wants at a time of the market in Unix seconds: the quote to sign. `positionOf` names its position in a
 * token.
 */
export type Wish = { at: number; segment: string; query: Record<string, string>; positionOf?: string }

type Agent = { base: string; agentId: string; key: Hex }

/** Requests the quote of a wish, signs it whatever it says, and posts it. Returns the code of the refusal, or null. */
export async function perform({ base, agentId, key }: Agent, wish: Wish): Promise<string | null> {
  const { segment, query, positionOf } = wish
  const path = `${base}/agents/${agentId}`
  const get = async (url: string): Promise<Body> => (await fetch(url)).json()
  const { positions }: Body = await get(`${path}/positions`)
  const position = positions.find(({ symbol }: Body) => symbol === positionOf)
  const wanted = { ...query, ...(positionOf !== undefined && { positionId: position?.positionId ?? '999' }) }
  const { code, typedData, body } = await get(`${path}/${segment}/quote?${new URLSearchParams(wanted)}`)
  if (typedData === undefined) return code
  const { EIP712Domain: _, ...types } = typedData.types
  const signature = await privateKeyToAccount(key).signTypedData({ ...typedData, types })
  const response = await fetch(`${path}/${segment}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...body, signature }),
  })
  const receipt: Body = await response.json()
  return response.ok ? null : receipt.code
}
