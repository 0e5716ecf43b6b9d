import { controls } from './controls.ts'
import { readDeployment } from './deployment.ts'
import { exitWith } from './environment.ts'

// `npm run devnet:time -- 3600` advances the chain's clock by an hour.
const seconds = Number(process.argv[2])
try {
  if (!Number.isInteger(seconds) || seconds <= 0) throw new Error('Usage: npm run devnet:time -- <seconds>')
  const time = await controls(readDeployment()).increaseTime(seconds)
  console.log(`The chain's time is ${new Date(time * 1000).toISOString()} (${time}).`)
  console.log('Clients follow it if they read the chain: pass `rpcUrl` to the client, --rpc to ats.')
  console.log('Prices older than a day are stale; `npm run devnet:price -- refresh` refreshes them.')
} catch (error) {
  exitWith(error)
}
