import { marketHours, SESSIONS } from '../packages/protocol/src/market-hours.ts'
import { controls } from './controls.ts'
import { readDeployment } from './deployment.ts'
import { exitWith } from './environment.ts'

// `npm run devnet:session -- closed` advances the chain's clock to the next time at which the equity market is in a
// session. `MARKET_SESSIONS=enforced npm run dev` makes exits and price refreshes wait for it, as they do in
// production.
const equitySessions = SESSIONS.filter(session => session !== 'continuous')
const STEP_SECONDS = 60

try {
  const session = equitySessions.find(each => each === process.argv[2])
  if (session === undefined) throw new Error(`Usage: npm run devnet:session -- ${equitySessions.join(' | ')}`)
  const devnet = controls(readDeployment())
  const now = await devnet.increaseTime(1)
  let at = now
  while (marketHours('us-equity-24-5', at).session !== session) at += STEP_SECONDS
  if (at > now) await devnet.increaseTime(at - now)
  // A closed market posts no prices: they grow stale, as in production.
  if (session !== 'closed') await devnet.refreshPrices()
  console.log(`The chain's time is ${new Date(at * 1000).toISOString()}: the session of equities is "${session}".`)
} catch (error) {
  exitWith(error)
}
