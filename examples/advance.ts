/** The market of a rehearsal after an agent's call: Unix seconds, and US dollars by symbol. */
export type Advanced = { time: string; isOver: boolean; prices: Record<string, string>; trades: { type: string }[] }

/**
 * Ends the turn of an agent in a rehearsal, and resolves when the market has moved on by `seconds`: the market waits
 * until its agents have decided. Resolves with undefined when there is no further bar.
 */
export async function advance(base: string, agentId: string, seconds: number): Promise<Advanced | undefined> {
  const until = now === undefined ? undefined : `${now + seconds}`
  const response = await fetch(`${base}/rehearsal/advance`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ agentId, until }),
  })
  if (!response.ok) throw new Error(`The market does not move: ${await response.text()}`)
  const advanced: Advanced = await response.json()
  now = Number(advanced.time)
  return advanced.isOver ? undefined : advanced
}

/** The market's time after the last call. */
let now: number | undefined
