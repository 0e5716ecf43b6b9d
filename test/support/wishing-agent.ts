// Performs the wishes of a file in a rehearsal of the day on which they were made. `start` is the first time of its
// tape.
import { readFileSync } from 'node:fs'
import type { Hex } from 'viem'
import { perform, type Wish } from './wishes.ts'

const { BASE = '', ATS_AGENT = '', AGENT_KEY } = process.env
const { start, wishes }: { start: number; wishes: Wish[] } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'))

async function advance(until: number): Promise<number> {
  const response = await fetch(`${BASE}/rehearsal/advance`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ agentId: ATS_AGENT, until: `${until}` }),
  })
  const { time }: { time: string } = await response.json()
  return Number(time)
}

/** The market's times are ahead of the tape's. */
const shift = (await advance(1)) - start
for (const wish of wishes) {
  await advance(wish.at + shift)
  await perform({ base: BASE, agentId: ATS_AGENT, key: AGENT_KEY as Hex }, wish)
}
