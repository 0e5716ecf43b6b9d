import type { z } from 'zod'
import { catalogVault } from '../catalog/vault-texts.ts'
import { getRegistrationTerms } from '../chain/agents.ts'
import type { Block } from '../chain/chain.ts'
import { contractsWithoutCode } from '../chain/deployed-code.ts'
import { readMarket } from '../chain/listings.ts'
import type { Config } from '../config.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/catalogue.ts'
import { Refusal } from '../errors/refusal.ts'
import type { LaneStatus } from '../executor/intent.ts'
import { MOST_GAP } from '../history/consistent-read.ts'
import type { KeeperStatus } from '../keeper/keeper-status.ts'
import { isReachable } from '../payments/hosted-facilitator.ts'
import { presentHistory, presentKeeper, presentLane, readiness } from '../resources/readiness.ts'
import { defineOperation } from './define-operation.ts'

/** A chain whose newest block is older than this is not followed, or stands still. */
const MOST_LAG_SECONDS = 300
/** A lane whose oldest transaction is older than this gets nothing included. */
const MOST_PENDING_SECONDS = 60
/** The cron trigger wakes the keeper every minute. */
const MOST_KEEPER_SECONDS = 150n

export const getReadiness = defineOperation(
  {
    id: 'getReadiness',
    method: 'get',
    path: '/health/ready',
    tag: 'Discovery',
    summary: 'Whether trading is possible',
    description:
      'Looks at the node, the contracts, the accounts that send, the prices and the pauses. 503 when nobody could open a position; what works only in part is in `problems`.',
    status: 200,
    output: readiness,
    errors: [500, 502, 503],
  },
  async context => {
    const { config } = context
    if (config.chain === undefined) throw refuse('NOT_READY', { problem: 'no chain is configured' })
    const { chain } = context
    const [{ block, market }, { terms }, missing, executors, relayers, updaters, keeper, facilitator, reach, events] =
      await Promise.all([
        readMarket(chain),
        getRegistrationTerms(chain),
        contractsWithoutCode(chain),
        lanesOf(config.executorKeys.length > 0 && config.trading ? () => context.executor : undefined),
        lanesOf(config.relayerKey ? () => context.relayer : undefined),
        lanesOf(config.oracleUpdaterKey ? () => context.updater : undefined),
        context.keeper?.status(),
        lookAtFacilitator(config),
        context.history.reach(),
        config.trading && context.live.status(),
      ]).catch((error: unknown) => {
        if (!(error instanceof Refusal && error.body.code === 'CHAIN_UNREACHABLE')) throw error
        throw refuse('NOT_READY', { problem: 'the node cannot be reached' }, { cause: error.cause })
      })
    const stale = market.tokens.filter(({ address }) => market.quoteIn(address).stale).map(({ symbol }) => symbol)
    const pausedVaults = market.vaults.filter(({ tradingPaused }) => tradingPaused)
    const lagSeconds = lagOf(block)
    const look = {
      service: config.service,
      rpc: { blockNumber: `${block.number}`, blockTimestamp: `${block.timestamp}`, lagSeconds },
      contracts: { missing },
      executor: { configured: executors !== undefined, lanes: (executors ?? []).map(presentLane) },
      relayer: { configured: relayers !== undefined, lanes: (relayers ?? []).map(presentLane) },
      updater: { configured: updaters !== undefined, lanes: (updaters ?? []).map(presentLane) },
      keeper: presentKeeper(keeper),
      history: presentHistory(reach, block),
      oracle: { stale },
      facilitator,
      events: { streams: events?.streams ?? 0, blockNumber: events?.block === undefined ? null : `${events.block}` },
      paused: { registry: terms.paused, vaults: pausedVaults.map(vault => catalogVault(vault).slug) },
    } satisfies Partial<z.input<typeof readiness>>

    const blocking = said({
      'the trade router is not configured': config.trading === undefined,
      'no executor account is configured': executors === undefined,
      [`contracts have no code: ${missing.join(', ')}`]: missing.length > 0,
      [`the newest block is ${lagSeconds} seconds old`]: lagSeconds > MOST_LAG_SECONDS,
      'no executor account can send': executors !== undefined && !executors.some(canSend),
      'the agent registry is paused': terms.paused,
      'there is no vault': market.vaults.length === 0,
      'trading is paused in every vault': market.vaults.length > 0 && pausedVaults.length === market.vaults.length,
      'no token has a fresh price': stale.length === market.tokens.length,
    })
    if (blocking.length > 0) throw refuse('NOT_READY', { problem: blocking.join('; '), ...look })
    const problems = said({
      'the relayer is not configured': relayers === undefined,
      'the relayer cannot send': relayers !== undefined && !relayers.some(canSend),
      'the updater cannot send': updaters !== undefined && !updaters.some(canSend),
      'no keeper is configured': keeper === undefined,
      'the keeper does not look at the positions': keeper !== undefined && !hasLooked(keeper, block),
      'the keeper cannot send': keeper !== undefined && !keeper.lanes.some(canSend),
      'there is no history yet': reach === undefined,
      [`the history is ${look.history.lagBlocks} blocks behind`]: (look.history.lagBlocks ?? 0) > MOST_GAP,
      'the facilitator does not answer': !facilitator.reachable,
      'registration fees cannot be taken': facilitator.kind === 'unusable',
      'an executor account cannot send': executors?.every(canSend) === false,
      [`prices are stale: ${stale.join(', ')}`]: stale.length > 0,
      'trading is paused in a vault': pausedVaults.length > 0,
      [`variables cannot be used: ${config.problems.join(', ')}`]: config.problems.length > 0,
    })
    return { status: 'ready' as const, ...look, problems }
  },
)

const lanesOf = async (executor: (() => Context['executor']) | undefined) => executor?.().status()

async function lookAtFacilitator({ payment }: Config): Promise<z.input<typeof readiness>['facilitator']> {
  if (payment === undefined) return { kind: 'none', reachable: true }
  if (payment === 'unusable') return { kind: 'unusable', reachable: true }
  const { facilitatorUrl } = payment
  if (facilitatorUrl === undefined) return { kind: 'own', reachable: true }
  return { kind: 'hosted', reachable: await isReachable(facilitatorUrl) }
}

const canSend = ({ pausedFor, oldestPendingSeconds }: LaneStatus) =>
  pausedFor === undefined && oldestPendingSeconds < MOST_PENDING_SECONDS

const hasLooked = ({ lastEvaluation }: KeeperStatus, { timestamp }: Block) =>
  lastEvaluation !== undefined && timestamp - BigInt(lastEvaluation.at) <= MOST_KEEPER_SECONDS

const lagOf = ({ timestamp }: Block) => Math.max(0, Math.floor(Date.now() / 1000) - Number(timestamp))

/** The sentences that are true. */
const said = (sentences: Record<string, boolean>) =>
  Object.entries(sentences).flatMap(([sentence, isTrue]) => (isTrue ? [sentence] : []))
