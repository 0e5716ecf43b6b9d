import type { AgentTradingError, ExitRule, OwnerReceipt, Prepared } from '@agent-trading-service/client'
import { signingSentence } from '@agent-trading-service/protocol/clear-signing'
import { termsOf, titleOf } from '@agent-trading-service/protocol/message-terms'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { toServiceError } from '../data/client.ts'
import { readAgain } from '../data/live.ts'
import { useStore } from '../data/store.ts'
import { useRead } from '../data/use-read.ts'
import { Code } from '../parts/copy.tsx'
import { Facts } from '../parts/panel.tsx'
import { Address, TransactionLink } from '../parts/text.tsx'
import { isSameAddress, Stopped, untilStopped, walletProblem } from './provider.ts'
import { connected } from './wallets.ts'

export type Fact = [label: string, value: ComponentChildren]
type Receipt = Pick<OwnerReceipt, 'blockNumber' | 'transactionHash'>
type SignedMessage = Prepared<unknown, Receipt> & {
  /** The ladder whose hash an order carries. */
  exits?: readonly ExitRule[]
  /** What the service says about it: not signed. */
  facts?: Fact[]
  /**
   * Reads again what the message rests on, before it is reviewed and before it is signed. Returns why it must not be.
   */
  findObstacle?(): Promise<string | undefined>
}
type Phase =
  | { kind: 'form' }
  | { kind: 'preparing' }
  | { kind: 'review'; prepared: SignedMessage }
  | { kind: 'signing'; prepared: SignedMessage }
  | { kind: 'submitting'; prepared: SignedMessage }
  | { kind: 'done'; receipt: Receipt }

type SignedActionProps = {
  title: string
  /** What it does, in a sentence. */
  text: ComponentChildren
  /** The fields to fill in. */
  children?: ComponentChildren
  /** Says what happened to the fields; undefined if nothing did. */
  notice?: string | undefined
  review: string
  tone?: 'danger'
  /** Says what is missing or wrong in the fields; undefined if nothing is. */
  problem?: string | undefined
  /** Who has to sign; undefined if any account may, or while it is unknown. */
  owner?: string | undefined
  /** The agent's signer, if that is who has to sign. */
  signer?: string
  /** Makes it an action for one message: its review begins at once, and Back leaves it. */
  leave?: () => void
  prepare: () => Promise<SignedMessage>
}

/**
 * An action of an owner or a signer: fields, then what will be signed in words, then the wallet's signature, then the
 * transaction.
 */
export function SignedAction(props: SignedActionProps) {
  const { title, text, children, notice, review, tone, problem, owner, signer, leave, prepare } = props
  const id = useId()
  const wallet = useStore(connected)
  const [phase, setPhase] = useState<Phase>({ kind: 'form' })
  const [failure, setFailure] = useState<AgentTradingError | string>()
  const stop = useRef<AbortController>(undefined)
  useEffect(() => {
    if (leave) startReview()
  }, [])

  async function startReview() {
    setFailure(undefined)
    setPhase({ kind: 'preparing' })
    try {
      const prepared = await prepare()
      const obstacle = await prepared.findObstacle?.()
      setFailure(obstacle)
      setPhase(obstacle === undefined ? { kind: 'review', prepared } : { kind: 'form' })
    } catch (error) {
      setFailure(toServiceError(error))
      setPhase({ kind: 'form' })
    }
  }
  async function signAndSend(prepared: SignedMessage) {
    setFailure(undefined)
    setPhase({ kind: 'signing', prepared })
    try {
      const obstacle = await prepared.findObstacle?.()
      if (obstacle !== undefined) {
        setFailure(obstacle)
        setPhase({ kind: 'form' })
        return
      }
    } catch (error) {
      setFailure(toServiceError(error))
      setPhase({ kind: 'review', prepared })
      return
    }
    const signature = await sign(prepared).catch(error => {
      setFailure(walletProblem(error))
      setPhase({ kind: 'review', prepared })
    })
    if (signature === undefined) return
    setPhase({ kind: 'submitting', prepared })
    try {
      const receipt = await prepared.submit(signature)
      setPhase({ kind: 'done', receipt })
      readAgain()
    } catch (error) {
      setFailure(toServiceError(error))
      setPhase({ kind: 'form' })
    }
  }
  async function sign(prepared: SignedMessage): Promise<`0x${string}`> {
    const wallet = connected.get()
    if (wallet === undefined) throw new Error('Connect the wallet first.')
    const params = [wallet.address, JSON.stringify(prepared.typedData)]
    stop.current = new AbortController()
    const answer = wallet.wallet.provider.request({ method: 'eth_signTypedData_v4', params })
    return (await untilStopped(answer, stop.current.signal)) as `0x${string}`
  }

  const reviewText = phase.kind === 'preparing' ? 'Preparing…' : review
  const party = signer ?? owner
  const obstacle =
    wallet === undefined
      ? 'Connect a wallet to sign this.'
      : party === undefined || isSameAddress(party, wallet.address)
        ? undefined
        : signer === undefined
          ? `Only the owner can sign this: ${party}.`
          : `Only the agent's signer can sign this: ${party}, here, with "ats order" or with the client.`
  return (
    <section class="action" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      <p class="fine">{text}</p>
      {phase.kind === 'done' ? (
        <div class="receipt" role="status" tabIndex={-1} ref={focus}>
          <strong>Done.</strong> Block <span class="num">{Number(phase.receipt.blockNumber).toLocaleString('en')}</span>
          , <TransactionLink hash={phase.receipt.transactionHash} />{' '}
          {leave === undefined && (
            <button type="button" class="link" onClick={() => setPhase({ kind: 'form' })}>
              Again
            </button>
          )}
        </div>
      ) : (phase.kind === 'form' || phase.kind === 'preparing') && obstacle !== undefined ? (
        <p class="fine">{obstacle}</p>
      ) : phase.kind === 'form' || phase.kind === 'preparing' ? (
        <form
          onSubmit={event => {
            event.preventDefault()
            startReview()
          }}
        >
          {notice && <p class="note-line warn">{notice}</p>}
          {children}
          {problem && <p class="fine">{problem}</p>}
          <button
            type="submit"
            class={tone}
            aria-label={`${reviewText}: ${title}`}
            disabled={problem !== undefined || phase.kind === 'preparing'}
          >
            {reviewText}
          </button>
        </form>
      ) : (
        <Review
          prepared={phase.prepared}
          progress={phase.kind}
          onSign={() => signAndSend(phase.prepared)}
          onCancel={() => {
            if (phase.kind === 'signing') return stop.current?.abort(new Stopped())
            setFailure(undefined)
            setPhase({ kind: 'form' })
            leave?.()
          }}
        />
      )}
      {failure !== undefined && <Problem failure={failure} />}
    </section>
  )
}

/** Moves the focus to what has just appeared. The same function in each render, so that it runs once. */
const focus = (element: HTMLElement | null) => element?.focus()

type ReviewProps = {
  prepared: SignedMessage
  progress: 'review' | 'signing' | 'submitting'
  onSign: () => void
  onCancel: () => void
}

const PROGRESS = { review: 'Sign in the wallet', signing: 'Open your wallet and sign…', submitting: 'Sending…' }

/** What will be signed: line by line, then what the service says of it, and the raw typed data. */
function Review({ prepared, progress, onSign, onCancel }: ReviewProps) {
  const wallet = useStore(connected)
  const tokens = useRead('listTokens', {}, { pollMs: 120_000 })
  const { typedData, signer, warnings, exits, facts = [] } = prepared
  const symbolOf = (token: string) =>
    tokens.data?.tokens.find(({ address }) => address.toLowerCase() === token.toLowerCase())?.symbol
  const isSigner = wallet !== undefined && isSameAddress(wallet.address, signer)
  return (
    <div class="review">
      <h4 tabIndex={-1} ref={focus}>
        You are about to sign
      </h4>
      <p>{titleOf(typedData)}.</p>
      <p>
        A wallet with the descriptor of this service shows: <b>{signingSentence(typedData, symbolOf)}</b>
      </p>
      <Facts
        items={[
          ...termsOf(typedData, { symbolOf, exits }).map(({ name, value }): Fact => [name, value]),
          ['signed by', <Address key="signer" value={signer} />],
          ['contract', <Address key="contract" value={typedData.domain.verifyingContract} />],
          ['chain', <span key="chain" class="num">{`${typedData.domain.chainId}`}</span>],
          ['gas', 'paid by the service'],
        ]}
      />
      {warnings.map(warning => (
        <p key={warning} class="note-line warn">
          {warning}
        </p>
      ))}
      {facts.length > 0 && <Facts items={facts} />}
      <details>
        <summary>Typed data</summary>
        <Code what="the typed data" text={JSON.stringify(typedData, undefined, 2)} />
      </details>
      {wallet === undefined ? (
        <p class="note-line warn">Connect the wallet of the address above to sign.</p>
      ) : (
        !isSigner && <p class="note-line warn">The wallet's account is not the address that must sign.</p>
      )}
      <div class="buttons">
        <button type="button" class="primary" disabled={!isSigner || progress !== 'review'} onClick={onSign}>
          {PROGRESS[progress]}
        </button>
        <button type="button" disabled={progress === 'submitting'} onClick={onCancel}>
          {progress === 'signing' ? 'Cancel' : 'Back'}
        </button>
      </div>
    </div>
  )
}

const Problem = ({ failure }: { failure: AgentTradingError | string }) => (
  <div class="failure" role="alert">
    {typeof failure === 'string' ? (
      <p>{failure}</p>
    ) : (
      <>
        <strong>{failure.message}</strong>
        {failure.remedy && <p>{failure.remedy}</p>}
        <p class="fine hex">{failure.code}</p>
      </>
    )}
  </div>
)
