import { parseArgs } from 'node:util'
import { chosenChain, describeChain } from '../devnet/chosen-chain.ts'
import { exitWith, portFrom } from '../devnet/environment.ts'
import { DEPLOYMENT_FILE, startDevnet } from '../devnet/index.ts'
import { startWorker, WORKER_STORAGE } from '../devnet/worker.ts'
import { workerVars } from '../devnet/worker-vars.ts'

// `npm run dev`: the embedded chain on CHAIN_PORT and the Worker on PORT, until Ctrl-C. `-- --chain robinhood` gives
// the chain that one's id, dollar, block time and fee tiers.
const { chain } = parseArgs({ options: { chain: { type: 'string' } } }).values
const port = portFrom('PORT', 8787)
const devnet = await startDevnet({
  port: portFrom('CHAIN_PORT', 8545),
  ...chosenChain(chain),
  baseUrl: `http://127.0.0.1:${port}`,
  deploymentFile: DEPLOYMENT_FILE,
  priceSource: process.env.PRICE_SOURCE === 'updater' ? 'updater' : 'reports',
}).catch(exitWith)
let stop = async (): Promise<void> => {
  await devnet.stop()
  process.exit() // the Worker is still starting: it exits with this process
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop())
try {
  // KEEPER_ENABLED=false leaves exits to calls of the contracts by hand.
  const vars = {
    ...workerVars(devnet.deployment),
    KEEPER_ENABLED: process.env.KEEPER_ENABLED || 'true',
    // `enforced` rehearses the hours of the market, with `npm run devnet:session`.
    MARKET_SESSIONS: process.env.MARKET_SESSIONS || 'off',
    // Receivers run on this machine too.
    WEBHOOK_LOCAL_TARGETS: 'true',
  }
  // A second service on another port must not empty the folder of the first one.
  const storage = process.env.PORT ? {} : { storage: WORKER_STORAGE }
  // What wrangler says about its start is shown if it fails; what the service says is shown.
  let isUp = false
  const output = (text: string) => void (isUp && process.stdout.write(text))
  const worker = await startWorker({ port, vars, output, ...storage })
  isUp = true
  stop = async () => {
    await worker.stop()
    await devnet.stop()
  }
  console.log(`service  ${worker.url} (docs at /docs, pages at /app)
chain    ${devnet.rpcUrl} (${describeChain(devnet.chainId)})
money    npm run devnet:fund -- 0x…, or the payer's key in .devnet/deployment.json, pays registration fees
markets  npm run devnet:price -- NVDA 120, npm run devnet:time -- 3600, npm run devnet:session -- closed
next     docs/for-agents.md. Ctrl-C stops both.`)
  const failure = await Promise.race([devnet.exited, worker.exited])
  if (failure) throw failure
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  await stop()
}
