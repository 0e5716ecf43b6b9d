import { useEffect } from 'preact/hooks'
import { readAgain } from '../../data/live.ts'
import { createStore, type Store, useStore } from '../../data/store.ts'
import { TransactionLink } from '../../parts/text.tsx'
import { walletProblem } from '../../wallet/provider.ts'
import { CallRefused, type OnSent, WrongChain } from '../../wallet/vault-calls.ts'
import { noteChain } from '../../wallet/wallets.ts'

/** The state of transactions that a form sends. */
type Progress = { running?: Note; problem?: string; done?: Required<Note> }
type Note = { text: string; hash?: string }
type Work = (step: (text: string) => void, sent: OnSent) => Promise<Required<Note>>

const SENT = 'Sent. Waiting for a block that has it…'
const unknown = (why: string) =>
  `Not known yet whether this transaction was executed: ${why}. Look it up before you send another one.`

const forms = new Map<string, Store<Progress>>()
function progressOf(form: string): Store<Progress> {
  const store = forms.get(form) ?? createStore<Progress>({})
  forms.set(form, store)
  return store
}

/** Runs the transactions of a form one after another and says where they are, also after another page was visited. */
export function useProgress(form: string, reload: () => void) {
  const store = progressOf(form)
  const progress = useStore(store)
  useEffect(() => {
    if (!store.get().running) store.set({})
  }, [store])

  async function run(work: Work) {
    if (store.get().running) return
    const step = (text: string) => store.set({ running: { text } })
    const sent: OnSent = (hash, why) => store.set({ running: { text: why === undefined ? SENT : unknown(why), hash } })
    step('Waiting for the wallet…')
    try {
      store.set({ done: await work(step, sent) })
      readAgain()
    } catch (error) {
      if (error instanceof WrongChain) noteChain(error.actual)
      store.set({ problem: error instanceof CallRefused ? error.message : walletProblem(error) })
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
