import { setTimeout as sleep } from 'node:timers/promises'

// Runs beside anvil, in a process of its own so that nothing its parent does delays a block: mines one every 0.25 s, and ends
// anvil when the parent is gone, even by SIGKILL.
const [rpcUrl = '', anvilPid = ''] = process.argv.slice(2)
const BLOCK_TIME_MS = 250

let mining = true
let lastBlock: Promise<unknown> = Promise.resolve()
process.on('message', async (wanted: boolean) => {
  mining = wanted
  await lastBlock
  process.send?.(mining)
})
process.on('disconnect', () => {
  try {
    process.kill(Number(anvilPid), 'SIGTERM')
  } catch {
    // it was stopped before its parent ended
  }
  process.exit()
})

for (let next = Date.now(); ; next = Math.max(next + BLOCK_TIME_MS, Date.now())) {
  await sleep(Math.max(0, next - Date.now()))
  if (!mining) continue
  lastBlock = fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":1,"method":"evm_mine","params":[]}',
  })
    .then(response => response.text())
    .catch(() => {}) // while the node starts or stops
  await lastBlock
}
