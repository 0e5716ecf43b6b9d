import { setTimeout as sleep } from 'node:timers/promises'
import { controls } from './controls.ts'
import { readDeployment } from './deployment.ts'
import { exitWith } from './environment.ts'

// `npm run devnet:reorg -- 10` takes back what the chain does in the next ten seconds.
const seconds = Number(process.argv[2])
try {
  if (!Number.isInteger(seconds) || seconds <= 0) throw new Error('Usage: npm run devnet:reorg -- <seconds>')
  console.log(`Trade now: in ${seconds} seconds the chain takes back what it has done since.`)
  console.log(`${await controls(readDeployment()).reorg(sleep(seconds * 1000))} blocks were removed.`)
} catch (error) {
  exitWith(error)
}
