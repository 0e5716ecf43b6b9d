import type { Hex } from 'viem'

/**
 * What an agent's owner says on chain of an examination: the hash of its certificate, and figures in basis points.
 * `beatsHoldingBps` is the share of runs that beat holding, `rankBps` the mean rank among random entries, and `edgeBps`
 * the deflated Sharpe ratio: the probability of a true ratio above 0, given the number of variants; -1 if undefined.
 */
export type ExaminationClaim = { hash: Hex } & Record<(typeof FIGURES)[number], number>

const FIGURES = ['runs', 'variants', 'medianReturnBps', 'beatsHoldingBps', 'rankBps', 'edgeBps'] as const

/** Returns a claim as the fragment of a metadata URI, without the number sign. */
export const encodeClaim = ({ hash, ...figures }: ExaminationClaim): string =>
  `examination=${hash}${FIGURES.map(name => `&${name}=${figures[name]}`).join('')}`

/** Returns the claim in the fragment of a metadata URI; undefined if there is none, or it is malformed. */
export function decodeClaim(metadataURI: string): ExaminationClaim | undefined {
  const [, hash, figures] = /#examination=(0x[0-9a-f]{64})((?:&\w+=-?\d{1,9})+)$/.exec(metadataURI) ?? []
  if (hash === undefined) return undefined
  const values = new URLSearchParams(figures)
  const claim = Object.fromEntries(FIGURES.map(name => [name, Number(values.get(name) ?? Number.NaN)] as const))
  if (Object.values(claim).some(Number.isNaN)) return undefined
  return { hash: hash as Hex, ...(claim as Omit<ExaminationClaim, 'hash'>) }
}
