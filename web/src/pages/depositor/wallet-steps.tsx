import { useState } from 'preact/hooks'
import { readAgain } from '../../data/live.ts'
import { TransactionLink } from '../../parts/text.tsx'
import { walletProblem } from '../../wallet/provider.ts'
import { CallRefused, type OnSent, WrongChain } from '../../wallet/vault-calls.ts'
import { noteChain } from '../../wallet/wallets.ts'

/** The state of transactions that a form sends. */
export type Progress = { running?: Note; problem?: string; done?: Required<Note> }
type Note = { text: string; hash?: string }
type Work = (step: (text: string) => void, sent: OnSent) => Promise<Required<Note>>

const SENT = 'Sent. Waiting for a block that has it…'
const REPLACED =
  'The outcome is unknown: another transaction took the place of this one, because it was sped up or cancelled in the wallet. Look it up there, and load this page again before you send another.'

/** Runs the transactions of a form one after another and says where they are. */
export function useProgress(reload: () => void) {
  const [progress, setProgress] = useState<Progress>({})
  async function run(work: Work) {
    const step = (text: string) => setProgress({ running: { text } })
    const sent: OnSent = (hash, isReplaced) => setProgress({ running: { text: isReplaced ? REPLACED : SENT, hash } })
    step('Waiting for the wallet…')
    try {
      setProgress({ done: await work(step, sent) })
      readAgain()
    } catch (error) {
      if (error instanceof WrongChain) noteChain(error.actual)
      setProgress({ problem: error instanceof CallRefused ? error.message : walletProblem(error) })
    }
    reload()
  }
  return { progress, run }
}

/** Where the transactions of a form are. */
export const ProgressNote = ({ progress: { running, problem, done } }: { progress: Progress }) => (
  <div class="progress-note" role="status">
    {running && (
      <p>
        {running.text} {running.hash && <TransactionLink hash={running.hash} />}
      </p>
    )}
    {problem && <p class="down">{problem}</p>}
    {done && (
      <p class="receipt">
        <strong>{done.text}</strong> <TransactionLink hash={done.hash} />
      </p>
    )}
  </div>
)
