import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import { freePort } from '../devnet/anvil.ts'
import { chosenChain, describeChain } from '../devnet/chosen-chain.ts'
import { DEPLOYMENT_FILE, type Devnet, startDevnet } from '../devnet/index.ts'
import { startWorker, type Worker } from '../devnet/worker.ts'
import { workerVars } from '../devnet/worker-vars.ts'
import { liveAsAgent } from './demo-agent.ts'
import { serviceAt } from './demo-service.ts'

// `npm run demo`: starts the chain and the service, and trades as one agent: it proves itself on paper, is promoted,
// trades real capital over the HTTP API, and then with MCP tools. An unexpected result exits with code 1.
//   --keep            leaves everything running and prints the addresses
//   --watch waits for Enter before the price falls and before it ends, so that the agent's page can be watched
//   --chain robinhood gives the chain that one's id, dollar, block time and fee tiers
//   --protocol-only   uses contracts that have no capital modes, so the agent starts with real capital

const off = { type: 'boolean', default: false } as const
const {
  chain,
  keep,
  watch,
  'protocol-only': protocolOnly,
} = parseArgs({ options: { chain: { type: 'string' }, keep: off, watch: off, 'protocol-only': off } }).values
const started = Date.now()
const secondsSinceStart = () => ((Date.now() - started) / 1000).toFixed(1)

let devnet: Devnet | undefined
let worker: Worker | undefined
const stop = async () => {
  await worker?.stop()
  await devnet?.stop()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop().then(() => process.exit(130)))
try {
  const port = await freePort()
  devnet = await startDevnet({
    ...chosenChain(chain),
    baseUrl: `http://127.0.0.1:${port}`,
    protocolOnly,
    // Contracts with protocol.md's functions only have an oracle that an updater posts to.
    priceSource: protocolOnly ? 'updater' : 'reports',
    ...(keep && { deploymentFile: DEPLOYMENT_FILE }),
  })
  console.log(`chain    ${devnet.rpcUrl} (${describeChain(devnet.chainId)}), contracts deployed, vaults funded`)
  // The demo posts each body once, also on a busy machine.
  worker = await startWorker({ port, vars: { ...workerVars(devnet.deployment), SUBMISSION_TIMEOUT_MS: '15000' } })
  console.log(`service  ${worker.url}, ready after ${secondsSinceStart()} s`)
  await liveAsAgent(devnet, serviceAt(worker.url), watch ? watchAt(worker.url) : undefined)
  console.log(`\nDone in ${secondsSinceStart()} s: every step as expected.`)
  if (watch) await waitForEnter('Press Enter: the service stops.')
  if (keep) {
    console.log(`\nStill running; Ctrl-C stops it. Try:
  curl -s ${worker.url}/vaults
  curl -s ${worker.url}/agents/1/risk-state
  npm run devnet:price -- NVDA 200
Addresses and keys: .devnet/deployment.json`)
    await Promise.race([devnet.exited, worker.exited])
  }
} catch (error) {
  console.error(error instanceof Error ? error.stack : error)
  process.exitCode = 1
} finally {
  await stop()
}

/** Returns a function that names the agent's page and waits for Enter. */
function watchAt(url: string): (agentId: string) => Promise<void> {
  return agentId => waitForEnter(`  watch it at ${url}/app/agents/${agentId} and press Enter: the price falls`)
}

/** Asks for Enter and waits for it, or for the end of the input. */
async function waitForEnter(request: string): Promise<void> {
  console.log(request)
  if (process.stdin.readableEnded) return
  const input = createInterface({ input: process.stdin })
  await new Promise(resolve => input.once('line', resolve).once('close', resolve))
  input.close()
}
