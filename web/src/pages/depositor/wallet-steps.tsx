import { useState } from 'preact/hooks'
import { readAgain } from '../../data/live.ts'
import { TransactionLink } from '../../parts/text.tsx'
import { CallRefused } from '../../wallet/vault-calls.ts'
import { walletProblem } from '../../wallet/wallets.ts'

/** The state of transactions that a form sends. */
export type Progress = { running?: string; problem?: string; done?: { text: string; hash: string } }

/** Runs the transactions of a form one after another and says where they are. */
export function useProgress(reload: () => void) {
  const [progress, setProgress] = useState<Progress>({})
  async function run(work: (step: (text: string) => void) => Promise<NonNullable<Progress['done']>>) {
    setProgress({ running: 'Waiting for the wallet…' })
    try {
      setProgress({ done: await work(running => setProgress({ running })) })
      readAgain()
    } catch (error) {
      setProgress({ problem: error instanceof CallRefused ? error.message : walletProblem(error) })
    }
    reload()
  }
  return { progress, run }
}

/** Where the transactions of a form are. */
export const ProgressNote = ({ progress: { running, problem, done } }: { progress: Progress }) => (
  <div class="progress-note" role="status">
    {running && <p>{running}</p>}
    {problem && <p class="down">{problem}</p>}
    {done && (
      <p class="receipt">
        <strong>{done.text}</strong> <TransactionLink hash={done.hash} />
      </p>
    )}
  </div>
)
