import { decodeEvent, eventTopic } from '@agent-trading-service/protocol/decode-event'
import { periodEnd } from '@agent-trading-service/protocol/leaderboard-period'
import {
  type Address,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  keccak256,
  numberToHex,
  pad,
  parseAbiParameters,
  stringToBytes,
} from 'viem'
import { erc8004ReputationRegistryAbi } from '../../contracts-abi/erc8004-reputation-registry.ts'
import { getAgents, isLinked, readIdentityRegistry } from '../chain/agents.ts'
import type { Chain } from '../chain/configured-chain.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import type { Executor } from '../executor/client.ts'
import type { FeedbackRow, WeeklyResult } from '../history/tables/feedback.ts'
import { logEvent } from '../log.ts'
import { nameOf, TRACKS } from '../resources/agent.ts'
import {
  FEEDBACK_DECIMALS,
  FEEDBACK_PERIOD,
  FEEDBACK_TAG,
  type FeedbackFile,
  presentRegistration,
} from '../resources/erc8004.ts'
import { getLogs } from '../rpc/logs.ts'
import { blockRequest } from '../rpc/requests.ts'

/** Files that one run creates and posts; the others follow in the next minute. */
const MAX_PER_RUN = 20
const DEADLINE_SECONDS = 600n
const NEW_FEEDBACK = eventTopic(erc8004ReputationRegistryAbi, 'NewFeedback')

type Reporting = { chain: Chain; reporter: Executor; registry: Address; baseUrl: string }

/**
 * Posts the result of each week that ended to the ERC-8004 reputation registry, losses too, if the deployment has a
 * reporter. A file is stored before it is posted. The lane posts each digest once, and forgets it only when it is
 * final; from then on the log of the chain tells that it is posted. So no crash posts twice.
 */
export async function postFeedback(context: Context): Promise<void> {
  const { config, reporter } = context
  const registry = config.chain?.contracts.ERC8004ReputationRegistry
  if (reporter === undefined || registry === undefined || config.trading === undefined || !config.baseUrl) return
  const reporting = { chain: context.chain, reporter, registry, baseUrl: config.baseUrl }
  await createFiles(context, reporting)
  for (const file of await context.history.feedback.findPending(MAX_PER_RUN)) await postFile(context, reporting, file)
}

async function createFiles({ history }: Pick<Context, 'history'>, { chain, reporter }: Reporting): Promise<void> {
  const { results, finalBlock } = await history.feedback.findResults(MAX_PER_RUN)
  if (results.length === 0) return
  const identityRegistry = await readIdentityRegistry(chain)
  const { agents } = await getAgents(
    chain,
    results.map(({ agentId }) => BigInt(agentId)),
  )
  const agentsById = new Map(agents.map(({ agentId, agent }) => [Number(agentId), agent]))
  for (const result of results) {
    const agent = agentsById.get(result.agentId)
    const erc8004AgentId = agent?.erc8004AgentId ?? 0n
    const identity = presentRegistration(chain.id, identityRegistry, erc8004AgentId)
    const content = JSON.stringify(presentFeedback(result, identity, `eip155:${chain.id}:${reporter.address}`))
    const row: FeedbackRow = {
      agentId: result.agentId,
      weekStart: result.weekStart,
      erc8004AgentId: `${erc8004AgentId}`,
      value: result.figures.returnPpm,
      content,
      hash: keccak256(stringToBytes(content)),
      createdBlock: finalBlock,
    }
    await history.feedback.add(row, agent && isLinked(agent) ? 'pending' : 'skipped')
  }
}

/** Presents the file about a week. It depends on nothing but its arguments, so that it is the same at every attempt. */
function presentFeedback(
  { agentId, weekStart, vault, track, figures }: WeeklyResult,
  identity: ReturnType<typeof presentRegistration>,
  reporter: `eip155:${number}:${Address}`,
): FeedbackFile {
  const weekEnd = periodEnd('week', weekStart) ?? weekStart
  const { pnl, gaps: _, ...measured } = figures
  return {
    ...identity,
    clientAddress: reporter,
    createdAt: new Date(weekEnd * 1_000).toISOString(),
    value: figures.returnPpm,
    valueDecimals: FEEDBACK_DECIMALS,
    tag1: FEEDBACK_TAG,
    tag2: FEEDBACK_PERIOD,
    result: {
      tradingAgentId: `${agentId}`,
      vault,
      trackName: nameOf(TRACKS, track),
      capital: 'real',
      weekStart: `${weekStart}`,
      weekEnd: `${weekEnd}`,
      pnlUsdc: pnl,
      ...measured,
    },
  }
}

async function postFile({ history }: Pick<Context, 'history'>, reporting: Reporting, file: FeedbackRow): Promise<void> {
  const { chain, reporter, registry } = reporting
  const by = { as: 'service', task: `feedback:${file.erc8004AgentId}` } as const
  const digest = digestOf(reporting, file)
  const known = await reporter.find(by, digest)
  if (known?.state === 'final') return history.feedback.markPosted(file)
  // The lane sends what it has journalled, also after a reorg.
  if (known !== undefined && known.state !== 'rejected' && known.state !== 'reverted') return
  const head = await chain.rpc.read(blockRequest('latest'))
  if (head === null) return
  if (await isOnChain(reporting, file, BigInt(head.number))) return history.feedback.markPosted(file)
  await history.feedback.countAttempt(file)
  const outcome = await reporter.relay({
    digest,
    kind: 'feedback',
    by,
    groupNonce: `${file.weekStart}`,
    deadline: nowAt({ timestamp: BigInt(head.timestamp) }) + DEADLINE_SECONDS,
    call: { to: registry, data: encodeFeedback(reporting, file) },
  })
  if (outcome.state !== 'mined') logEvent('feedback not posted', { state: outcome.state, agentId: file.agentId })
}

/** Names one week of an agent in one registry, so that it is posted at most once. */
const digestOf = ({ chain, registry, reporter }: Reporting, { agentId, weekStart }: FeedbackRow): Hex =>
  keccak256(
    encodeAbiParameters(parseAbiParameters('string, uint256, address, address, uint256, uint256'), [
      'weekly feedback',
      BigInt(chain.id),
      registry,
      reporter.address,
      BigInt(agentId),
      BigInt(weekStart),
    ]),
  )

const encodeFeedback = (
  { baseUrl }: Reporting,
  { agentId, weekStart, erc8004AgentId, value, hash }: FeedbackRow,
): Hex =>
  encodeFunctionData({
    abi: erc8004ReputationRegistryAbi,
    functionName: 'giveFeedback',
    args: [
      BigInt(erc8004AgentId),
      BigInt(value),
      FEEDBACK_DECIMALS,
      FEEDBACK_TAG,
      FEEDBACK_PERIOD,
      '',
      `${baseUrl}/agents/${agentId}/feedback/${weekStart}`,
      hash,
    ],
  })

/** Returns whether the chain has feedback of the reporter with the hash of the file. */
async function isOnChain({ chain, reporter, registry }: Reporting, file: FeedbackRow, head: bigint): Promise<boolean> {
  const topics = [NEW_FEEDBACK, numberToHex(BigInt(file.erc8004AgentId), { size: 32 }), pad(reporter.address)]
  const logs = await getLogs(
    chain.rpc,
    { address: registry, topics },
    { fromBlock: BigInt(file.createdBlock), toBlock: head },
  )
  return logs.some(log => {
    const { eventName, args } = decodeEvent(erc8004ReputationRegistryAbi, log)
    return eventName === 'NewFeedback' && args.feedbackHash === file.hash
  })
}
