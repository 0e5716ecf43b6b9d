import { startDevnet } from './index.ts'
import { execSync } from 'node:child_process'
const d = await startDevnet()
const t0=Date.now()
for (;;) { const s=(Date.now()-t0)/1000; console.log(Math.round(s), execSync('ps -C anvil -o rss= || true').toString().trim(), await d.client.getBlockNumber()); if (s>450) break; await new Promise(r=>setTimeout(r,60000)) }
await d.stop()
