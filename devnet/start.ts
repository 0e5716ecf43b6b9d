import { parseArgs } from 'node:util'
import { chosenChain, describeChain } from './chosen-chain.ts'
import { exitWith, portFrom } from './environment.ts'
import { DEPLOYMENT_FILE, startDevnet } from './index.ts'

// `npm run devnet`: the embedded chain on CHAIN_PORT, until Ctrl-C. `-- --chain robinhood` gives it that chain's id,
// dollar, block time and fee tiers.
const { chain } = parseArgs({ options: { chain: { type: 'string' } } }).values
const startedAt = performance.now()
const devnet = await startDevnet({
  port: portFrom('CHAIN_PORT', 8545),
  ...chosenChain(chain),
  baseUrl: `http://127.0.0.1:${portFrom('PORT', 8787)}`,
  deploymentFile: DEPLOYMENT_FILE,
  priceSource: process.env.PRICE_SOURCE === 'updater' ? 'updater' : 'reports',
}).catch(exitWith)
const { vaults, tokens, contracts, accounts } = devnet.deployment
console.log(`devnet ready in ${((performance.now() - startedAt) / 1000).toFixed(1)} s
  RPC         ${devnet.rpcUrl} (${describeChain(devnet.chainId)})
  deployment  ${DEPLOYMENT_FILE}
  vaults      ${listed(vaults)}
  tokens      ${Object.keys(tokens).join(' ')}
  router      ${contracts.TradeRouter}
  agents      ${accounts.agents.length} funded accounts, from ${accounts.agents[0]?.address}
  try         npm run devnet:price -- NVDA 120
              npm run devnet:time -- 3600
Ctrl-C stops it.`)

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => devnet.stop())
const failure = await devnet.exited
if (failure) exitWith(failure)

function listed(addresses: Record<string, string>): string {
  return Object.entries(addresses)
    .map(([name, address]) => `${name} ${address}`)
    .join('\n              ')
}
