import { createPublicClient, type Hex, http } from 'viem'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { chain, FRONTIER } from './actors.ts'
import { deployment } from './surfaces.ts'

const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const vault = { address: FRONTIER, abi: mandateVaultAbi } as const
const COST = deployment.tokens.COST as Hex

/** Sets whether the vault that trades with real capital allows COST, the token with the thinnest pool. */
export async function allowCost(isAllowed: boolean): Promise<void> {
  const count = await client.readContract({ ...vault, functionName: 'allowedTokenCount' })
  const known = await Promise.all(
    Array.from({ length: Number(count) }, (_, index) =>
      client.readContract({ ...vault, functionName: 'allowedTokenAt', args: [BigInt(index)] }),
    ),
  )
  const isKnown = known.includes(COST)
  if (isKnown) await chain.administer({ ...vault, functionName: 'setTokenEnabled', args: [COST, isAllowed] })
  else await chain.administer({ ...vault, functionName: 'enableToken', args: [COST] })
}
