import { useEffect } from 'preact/hooks'
import { readAgain } from '../../data/live.ts'
import { createStore, type Store, useStore } from '../../data/store.ts'
import { TransactionLink } from '../../parts/text.tsx'
import { newestPricesOf } from '../../wallet/newest-prices.ts'
import { type Connected, isSameAddress, Stopped, walletProblem } from '../../wallet/provider.ts'
import {
  CallRefused,
  LOOK_IN_WALLET,
  outcomeOf,
  sendCall,
  type VaultCall,
  WrongAccount,
  WrongChain,
} from '../../wallet/vault-calls.ts'
import { connected, note } from '../../wallet/wallets.ts'
import { type FormTransaction, recall, remember } from './sent-transaction.ts'

/** A transaction that a form sends: what it does, and the text of its receipt. */
export type WalletStep = { does: string; done: string; call: VaultCall }

/** The state of a form's transaction. `stop` ends the wait for the wallet. */
type Progress = {
  running?: { text: string; hash?: string; stop?: () => void }
  problem?: string
  done?: { text: string; hash: string }
}

const SENT = 'Sent. Waiting for a block that has it…'
const unknown = (why: string) =>
  `Not known yet whether this transaction was executed: ${why}. Look it up before you send another one.`
const STOPPED = 'You stopped waiting for the wallet. Decline there what it still shows; if it is sent, it appears here.'
const RELOADED = `The page was loaded again while the wallet was asked. ${LOOK_IN_WALLET}`
const UNFOLLOWED = 'Sent before the page was loaded again. Connect the wallet that sent it to see its outcome.'

const forms = new Map<string, Store<Progress>>()
function progressOf(form: string): Store<Progress> {
  const store = forms.get(form) ?? createStore<Progress>({})
  forms.set(form, store)
  return store
}
/** Where a transaction is followed that the wallet sent after the form had stopped waiting for it. */
const lateOf = (form: string) => `${form}, late`

/**
 * Runs a form's transactions one after another and says where they are, also after another page was visited or a
 * reload.
 */
export function useProgress(form: string, reload: () => void) {
  const store = progressOf(form)
  const progress = useStore(store)
  const late = useStore(progressOf(lateOf(form)))
  const wallet = useStore(connected)
  useEffect(() => {
    if (!store.get().running) store.set({})
  }, [store])
  useEffect(() => {
    for (const name of [form, lateOf(form)]) resume(name, wallet, reload)
  }, [form, wallet])

  /** Resolves with whether all of them were executed. */
  async function run(current: Connected, steps: WalletStep[]): Promise<boolean> {
    if (store.get().running) return false
    let isDone = false
    try {
      for (const [index, { does, done, call }] of steps.entries()) {
        requireSame(current)
        const stop = new AbortController()
        const count = steps.length > 1 ? `${index + 1} of ${steps.length}: ` : ''
        const text = `${count}${does}. Open your wallet and confirm.`
        store.set({ running: { text, stop: () => stop.abort(new Stopped()) } })
        const transaction: FormTransaction = { done, address: current.address, chainId: current.chainId }
        remember(form, transaction)
        const hash = await sendCall(current, call, {
          signal: stop.signal,
          pricesOf: newestPricesOf,
          onLate(hash) {
            remember(lateOf(form), hash && { ...transaction, hash })
            resume(lateOf(form), current, reload)
          },
        }).catch(error => {
          remember(form, undefined)
          if (error instanceof Stopped) remember(lateOf(form), transaction)
          throw error
        })
        await follow(form, current, { ...transaction, hash })
      }
      isDone = true
    } catch (error) {
      if (error instanceof WrongChain) note({ chainId: error.actual })
      if (error instanceof WrongAccount && error.actual) note({ address: error.actual })
      store.set({ problem: problemOf(error) })
    }
    reload()
    return isDone
  }
  return { progress, late, isBusy: progress.running !== undefined || late.running !== undefined, run }
}

const problemOf = (error: unknown): string =>
  error instanceof Stopped ? STOPPED : error instanceof CallRefused ? error.message : walletProblem(error)

/** A step must not go out for an account that the person has left in the meantime. */
function requireSame({ wallet, address }: Connected) {
  const now = connected.get()
  if (now?.wallet.id !== wallet.id || !isSameAddress(now.address, address))
    throw new WrongAccount(now?.address, address)
}

/** Follows a transaction to its outcome. Throws CallRefused. */
async function follow(form: string, { wallet }: Connected, transaction: FormTransaction & { hash: `0x${string}` }) {
  const store = progressOf(form)
  const { hash, done } = transaction
  const onOpen = (why?: string) => store.set({ running: { text: why === undefined ? SENT : unknown(why), hash } })
  remember(form, transaction)
  onOpen()
  const mined = await outcomeOf(wallet.provider, transaction, onOpen).finally(() => remember(form, undefined))
  store.set({ done: { text: done, hash: mined } })
  readAgain()
}

/** The forms that were looked up since the page was loaded: what they ask for later is not from before. */
const resumed = new Set<string>()

/** Takes up a transaction that nothing follows: from before a reload, or sent late. */
async function resume(form: string, wallet: Connected | undefined, reload: () => void) {
  const store = progressOf(form)
  const { running } = store.get()
  const transaction = recall(form)
  const isFirst = !resumed.has(form)
  resumed.add(form)
  if (transaction === undefined || (running && running.text !== UNFOLLOWED)) return
  const forget = () => {
    remember(form, undefined)
    store.set({})
  }
  const { hash } = transaction
  if (hash === undefined) {
    if (!isFirst) return
    forget()
    return store.set({ problem: RELOADED })
  }
  if (wallet === undefined) return store.set({ running: { text: UNFOLLOWED, hash, stop: forget } })
  await follow(form, wallet, { ...transaction, hash }).catch(error => store.set({ problem: problemOf(error) }))
  reload()
}

/** Where the transactions of a form are. */
export const ProgressNote = ({ progress: { running, problem, done } }: { progress: Progress }) => (
  <div class="progress-note" role="status">
    {running && (
      <p>
        {running.text} {running.hash && <TransactionLink hash={running.hash} />}{' '}
        {running.stop && (
          <button type="button" onClick={running.stop}>
            {running.hash ? 'Forget it' : 'Cancel'}
          </button>
        )}
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
