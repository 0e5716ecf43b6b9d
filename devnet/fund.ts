import { getAddress, isAddress, parseUnits } from 'viem'
import { controls } from './controls.ts'
import { readDeployment } from './deployment.ts'
import { exitWith } from './environment.ts'

// `npm run devnet:fund -- 0x… 100` gives an account 100 USDC (1000 by default) and 1 ETH for gas.
const [address, usdc = '1000'] = process.argv.slice(2)
try {
  if (address === undefined || !isAddress(address, { strict: false }) || !/^\d{1,12}(\.\d{1,6})?$/.test(usdc))
    throw new Error('Usage: npm run devnet:fund -- <address> [USDC]')
  await controls(readDeployment()).fund(getAddress(address), parseUnits(usdc, 6))
  console.log(`${getAddress(address)} has ${usdc} USDC more, and 1 ETH for gas.`)
} catch (error) {
  exitWith(error)
}
