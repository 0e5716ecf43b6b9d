import { formatUnits } from 'viem'
import { controls } from './controls.ts'
import { readDeployment } from './deployment.ts'
import { exitWith } from './environment.ts'

// `npm run devnet:price -- NVDA 120` posts a price; `-- refresh` posts all current prices again.
const [symbol, price] = process.argv.slice(2)
try {
  const devnet = controls(readDeployment())
  if (symbol === 'refresh') {
    await devnet.refreshPrices()
    console.log('All prices are fresh.')
  } else if (symbol && price) {
    const { from, to, by, transactionHash, ...move } = await devnet.setPrice(symbol, price)
    const change = (Number(to - from) / Number(from)) * 100
    console.log(`${move.symbol} ${formatUnits(from, 8)} -> ${formatUnits(to, 8)} USD (${change.toFixed(2)} %)`)
    if (by === 'forcer')
      console.log('The updater may not post it (a large move, or another source), so the forcer role did.')
    console.log(`The pool trades at the new price. Transaction ${transactionHash}`)
  } else {
    throw new Error('Usage: npm run devnet:price -- <SYMBOL> <USD>, or: npm run devnet:price -- refresh')
  }
} catch (error) {
  exitWith(error)
}
