import { publicChain } from '@agent-trading-service/protocol/known-chain'
import { publicChains } from '@agent-trading-service/protocol/public-chains'
import { exitWith } from './environment.ts'
import type { DevnetOptions } from './index.ts'

/**
 * Returns the chain that an embedded one takes after: that of `--chain` in the script's arguments, by its name in
 * docs/chains.md, with its block time and several pools for each token, or only the id of CHAIN_ID. Exits the script if
 * there is none of that name.
 */
export function chosenChain(
  name: string | undefined,
): Pick<DevnetOptions, 'chainId' | 'blockMs' | 'emptyBlockMs' | 'hasTiers'> {
  if (name === undefined) return { chainId: Number(process.env.CHAIN_ID || 31337) }
  const facts = publicChains.find(({ environment }) => environment === name)
  if (facts === undefined)
    exitWith(
      `There is no chain ${name}: --chain takes one of ${publicChains.map(each => each.environment).join(', ')}.`,
    )
  const { id: chainId, blockTime: blockMs } = facts.chain
  return { chainId, blockMs, emptyBlockMs: facts.makesBlocksOnDemand ? undefined : blockMs, hasTiers: true }
}

/** Says that a chain is embedded, and which public chain it must not be taken for. */
export function describeChain(chainId: number): string {
  const namesake = publicChain(chainId)?.chain.name
  return `embedded, chain id ${chainId}${namesake === undefined ? '' : `; not ${namesake}: its money is worthless, its keys are public`}`
}
