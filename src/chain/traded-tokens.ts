import { type Address, zeroAddress } from 'viem'
import { unreachable } from '../rpc/node-errors.ts'
import type { Chain } from './configured-chain.ts'

const MAX_TRADED = 10_000
/** Nodes on different branches of a fork name different tokens. */
const MAX_GUESSES = 3

/** Returns the token that a position is of, as far as this isolate knows: a reorg may give its id away again. */
export const guessToken = ({ memory }: Chain, positionId: bigint): Address | undefined =>
  memory.tradedTokens.get(positionId)

export function noteToken({ memory: { tradedTokens: traded } }: Chain, positionId: bigint, token: Address): void {
  if (traded.get(positionId) === token) return
  traded.set(positionId, token)
  const [oldest] = traded.keys()
  if (traded.size > MAX_TRADED && oldest !== undefined) traded.delete(oldest)
}

/**
 * Reads what depends on the token of a position, with a guess of it. `read` returns the token that the position has
 * been found to be of, undefined if there is none; if the guess was another one, it reads again. Throws
 * CHAIN_UNREACHABLE if the token keeps changing.
 */
export async function readWithToken<Reading extends { token: Address | undefined }>(
  chain: Chain,
  positionId: bigint,
  read: (guess: Address | undefined) => Promise<Reading>,
): Promise<Reading> {
  for (let guesses = 0; guesses < MAX_GUESSES; guesses++) {
    const guess = guessToken(chain, positionId)
    const reading = await read(guess)
    const { token } = reading
    if (token === undefined || token === zeroAddress || token === guess) return reading
    noteToken(chain, positionId, token)
  }
  throw unreachable(`the nodes name different tokens of position ${positionId}`)
}
