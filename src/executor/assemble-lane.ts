import type { Address, Hex } from 'viem'
import { parseConfig } from '../config/config.ts'
import { createTransport } from '../rpc/transport.ts'
import { createSharedDeadlines } from '../timeout.ts'
import { createAttemptSigner } from './assign-nonce-and-sign.ts'
import { logUnexpected } from './background-errors.ts'
import { createHeadCache } from './chain-head.ts'
import { createGasBudgets } from './gas-budgets.ts'
import { createIdleNonceWatch } from './idle-nonce-watch.ts'
import { createInFlightLimit } from './in-flight-limit.ts'
import { createIntentOutcomes } from './intent-outcomes.ts'
import type { LaneAlarm } from './lane-alarm.ts'
import { createLaneAlerts } from './lane-alerts.ts'
import { accountNames, createLaneMetrics } from './lane-metrics.ts'
import { createPauseRules } from './pause-rules.ts'
import { createReceiptForwarder } from './receipt-forwarder.ts'
import { createReconciliation } from './reconciliation.ts'
import { createIntake } from './relay-intake.ts'
import { createAttemptSender } from './send-until-included.ts'
import { signingAccountOf } from './signing-account.ts'
import { createSubmitter } from './simulate-sign-and-send.ts'
import { createSimulator } from './simulation.ts'
import type { Journal } from './store.ts'

export type Lane = ReturnType<typeof assembleLane>

/** Creates the parts of a lane. Throws if no chain is configured, or no key for the address. */
export function assembleLane({
  address,
  env,
  journal,
  alarm,
  sync,
  onReceived,
}: {
  address: Address
  env: Env
  journal: Journal
  alarm: LaneAlarm
  /** Resolves when all writes so far are durable. */
  sync: () => Promise<void>
  /** Called with the digest of every new request. */
  onReceived: (digest: Hex) => void
}) {
  const variables: Partial<Record<string, unknown>> = { ...env }
  const config = parseConfig(variables)
  const { chain, trading, inclusionTimeoutMs, priorityFeeWei, gasBudgets: gasLimits } = config
  if (chain === undefined) throw new Error('A lane needs CHAIN_ID, RPC_URL and CONTRACTS')

  const rpc = createTransport(chain.rpcUrls, { within: createSharedDeadlines() })
  const account = signingAccountOf(address, chain.id, variables)
  const inFlightLimit = createInFlightLimit()
  const alerts = createLaneAlerts({ address, priorityFeeWei })
  const pauses = createPauseRules(journal)
  const gasBudgets = createGasBudgets(journal.gasLevels, gasLimits)
  const simulate = createSimulator(rpc, address)
  const idleNonces = createIdleNonceWatch({
    address,
    onForeignTransactions(count, nextNonce) {
      pauses.recordForeignTransactions(count)
      journal.setNextNonce(nextNonce) // persisted, so that a restart does not count them again
    },
  })
  const lastGenesis = () => journal.get('genesis') as Hex | undefined
  const heads = createHeadCache({
    rpc,
    address,
    chain,
    knownGenesis: () => (journal.isEmpty() ? undefined : lastGenesis()),
    lastGenesis,
    nextNonce: () => attemptSigner.nextNonce(),
    onImplausibleNonce: alerts.recordImplausibleNonce,
    onHead(head) {
      const isKnownChain = journal.get('genesis') === head.genesis
      idleNonces.observe(head, isKnownChain ? attemptSigner.nextNonce() : 0)
      attemptSigner.observe(head)
      alerts.observeBalance(head)
    },
  })
  const intentOutcomes = createIntentOutcomes({
    rpc,
    journal,
    gasBudgets,
    alerts,
    metrics: createLaneMetrics(accountNames(config).get(address) ?? 'unknown'),
    from: address,
    onMined: createReceiptForwarder(
      env.HISTORY_INDEXER,
      chain.id,
      trading === undefined ? [] : [trading.TradeRouter, trading.PositionManager],
    ),
  })
  const attemptSigner = createAttemptSigner({
    account,
    heads,
    journal,
    priorityFeeWei,
    sync,
    onNewChain() {
      journal.clear()
      intentOutcomes.abandonAll()
    },
  })
  const sender = createAttemptSender({
    rpc,
    journal,
    heads,
    attemptSigner,
    intentOutcomes,
    inFlightLimit,
    inclusionTimeoutMs,
    onNonceConflict: () => void reconcile().catch(logUnexpected),
    onUnfunded(cost) {
      pauses.pauseForFunds(cost)
      heads.expire()
    },
  })
  const { reconcile } = createReconciliation({
    rpc,
    journal,
    heads,
    attemptSigner,
    intentOutcomes,
    sender,
    simulate,
    alerts,
    address,
    priorityFeeWei,
    onForeignTransaction: () => pauses.recordForeignTransactions(1),
  })
  const submit = createSubmitter({
    journal,
    heads,
    attemptSigner,
    simulate,
    sender,
    pauses,
    gasBudgets,
    alarm,
    priorityFeeWei,
  })
  const intake = createIntake({
    journal,
    inFlightLimit,
    intentOutcomes,
    pauses,
    gasBudgets,
    submit,
    reconcile,
    inclusionTimeoutMs,
    onReceived,
  })
  return { account, attemptSigner, inFlightLimit, heads, pauses, gasBudgets, sender, intake, reconcile }
}
