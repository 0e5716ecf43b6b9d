import type { AccountPurpose, ServiceAccount } from '@agent-trading-service/protocol/deployment-facts'
import { type Finding, faultsOf } from '@agent-trading-service/protocol/finding'
import type { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { judgeDeployment } from '../doctor/judge-deployment.ts'
import { judgePriceSources, readPriceSources } from '../doctor/judge-price-sources.ts'
import { readDeploymentFacts } from '../doctor/read-deployment-facts.ts'
import { addressOfKey } from '../executor/signing-account.ts'
import { presentAsOf } from '../resources/primitives.ts'

/** Returns what is wrong with the contracts and the roles, as `ats doctor` does. Throws CHAIN_UNREACHABLE. */
export async function findDeploymentFaults(
  { config, trading, deploymentCache }: Pick<Context, 'config' | 'deploymentCache' | 'trading'>,
  vaultsAndTokens: ReturnType<typeof readVaultsAndTokens>,
): Promise<Finding[]> {
  const { findings } = await deploymentCache.getOrRead('deployment', async () => {
    const accounts = accountsOf(config)
    const facts = await readDeploymentFacts(trading, accounts)
    const { registered } = await vaultsAndTokens
    const sources = await readPriceSources(trading, registered.tokens)
    const { payment } = config
    const isPaidHere = typeof payment === 'object' && payment.network === `eip155:${facts.chainId}`
    const findings = judgeDeployment(facts, {
      accounts,
      payment: isPaidHere ? payment : undefined,
      // A development chain may have any id; the doctor warns if a real one has the variable.
      isEmbedded: trading.isDevelopment || trading.isEmbedded,
    })
    return { findings: faultsOf([...findings, ...judgePriceSources(sources)]), asOf: presentAsOf(facts.block) }
  })
  return findings
}

function accountsOf({ executorKeys, relayerKey, oracleUpdaterKey, keeper, reporterKey }: Config): ServiceAccount[] {
  const of = (purpose: AccountPurpose, ...keys: Config['executorKeys']) =>
    keys.map(key => ({ purpose, address: addressOfKey(key) }))
  return [
    ...of('executor', ...executorKeys),
    ...of('relayer', ...(relayerKey ? [relayerKey] : [])),
    ...of('updater', ...(oracleUpdaterKey ? [oracleUpdaterKey] : [])),
    ...of('keeper', ...(keeper ? [keeper.key] : [])),
    ...of('reporter', ...(reporterKey ? [reporterKey] : [])),
  ]
}
