// Agents that exist only in the index. Their ids share a prefix by which a proxy finds them in chain calls; the proxy
// replaces them with the ids of a few real agents.

const PREFIX = 0xa6e47
const DIGITS = 8
const BASE = PREFIX * 16 ** DIGITS
const WORD = new RegExp(`0{${64 - 5 - DIGITS}}${PREFIX.toString(16)}([0-9a-f]{${DIGITS}})`, 'g')

/** Returns the id of a synthetic agent. */
export const agentIdAt = (index: number): number => BASE + index

/** Replaces the ids of synthetic agents in the calldata of a request with real agents' ids, in rotation. */
export const withRealAgents =
  (realIds: readonly bigint[]) =>
  (body: string): string =>
    body.replaceAll(WORD, (_, digits: string) => {
      const real = realIds[Number.parseInt(digits, 16) % realIds.length] ?? 0n
      return real.toString(16).padStart(64, '0')
    })
