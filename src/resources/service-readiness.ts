import { z } from 'zod'
import { addressOut, digits, hashOut, unixSeconds } from './primitives.ts'
import { tokenRestriction } from './token.ts'

export const lane = z
  .object({
    address: addressOut.describe('The account that sends transactions'),
    balanceWei: digits(
      "Balance of the account in wei; null without the operator's bearer token, and until the node has responded once",
    ).nullable(),
    nextNonce: z.int().nullable().describe('Nonce of the next transaction; null while none can be assigned'),
    hasRole: z.boolean().describe('Whether the contracts let the account do what it is for'),
    pending: z.int().describe('Transactions that are not included yet'),
    oldestPendingSeconds: z.int().describe('Age of the oldest pending transaction in seconds'),
    depth: z.int().describe('Maximum transactions in flight at present; adapts to the node'),
    paused: z.boolean().describe('Whether intake is paused'),
    pausedFor: z
      .enum(['funds', 'shared key'])
      .nullable()
      .describe('Why intake is paused: the account cannot pay for gas, or its key is used elsewhere'),
    foreignUse: z
      .object({
        nonce: z.int().describe('The last nonce that a transaction of others used'),
        since: unixSeconds('When the first of them was noticed'),
        transactionHash: hashOut.nullable().describe('That transaction; null if the nodes no longer show it'),
        to: addressOut
          .nullable()
          .describe('What it called: a contract of this deployment if a second copy of the service sent it'),
      })
      .nullable()
      .describe("What others sent with the account's key in the last ten minutes; null if nothing"),
  })
  .meta({ id: 'Lane' })

export type Lane = z.input<typeof lane>

const finding = z
  .object({
    check: z.string().describe('What kind of fact it is, such as wiring, role, policy or admin'),
    subject: z.string().describe('What was checked'),
    verdict: z.enum(['ok', 'unchecked', 'warning', 'wrong']),
    sentence: z.string().describe('What is wrong'),
    fix: z.string().nullable().describe('The command that fixes it'),
  })
  .meta({ id: 'Finding' })

export const serviceReadiness = z
  .object({
    status: z.enum(['ready']).describe('A deployment that cannot trade responds 503 with the same fields in `details`'),
    service: z.string(),
    rpc: z.object({
      blockNumber: digits('Newest block'),
      blockTimestamp: unixSeconds('Timestamp of the newest block'),
      lagSeconds: z.int().describe('How old the newest block is; seconds'),
      clockSkewSeconds: z
        .int()
        .describe(
          "How many seconds the service's clock is ahead of all nodes' clocks, negative if behind; 0 within a minute. The nodes' time is used then",
        ),
      nodes: z
        .array(
          z.object({
            place: z.int().describe('Its place in RPC_URL, from 1 on'),
            problem: z.string().nullable().describe('What is wrong with it; null if nothing'),
          }),
        )
        .describe('The nodes, compared with each other; empty if there is only one'),
    }),
    reader: z
      .object({
        path: z
          .enum(['deployed', 'override', 'none'])
          .describe(
            'deployed: through the ServiceReader contract. override: through a state override that carries its code. none: no node serves quotes',
          ),
        problem: z.string().nullable().describe('What the node returns instead of a quote'),
      })
      .describe('How quotes and other reads of several contracts reach the node'),
    contracts: z.object({
      missing: z.array(z.string()).describe('Configured contracts that have no code'),
    }),
    executor: z.object({ configured: z.boolean(), lanes: z.array(lane) }),
    relayer: z.object({ configured: z.boolean(), lanes: z.array(lane) }),
    updater: z
      .object({ configured: z.boolean(), lanes: z.array(lane) })
      .describe('The accounts that post prices to the oracle'),
    reporter: z
      .object({ configured: z.boolean(), lanes: z.array(lane) })
      .describe('The account that posts weekly results of agents to the ERC-8004 reputation registry'),
    keeper: z
      .object({
        configured: z.boolean(),
        lastEvaluation: z
          .object({ blockNumber: digits('Block it evaluated'), at: unixSeconds('Timestamp of that block') })
          .nullable()
          .describe('Null before its first cycle'),
        openPositions: z.int().describe('Positions it watches'),
        pendingExits: z.int().describe('Positions with an exit in flight'),
        lanes: z.array(lane),
      })
      .describe('Fires exit rules when their trigger is reached'),
    history: z
      .object({
        cursor: digits('Last indexed block; null before the first').nullable(),
        headBlock: digits('Newest block'),
        lagBlocks: z.int().nullable().describe('Blocks from cursor to headBlock'),
        lagSeconds: z.int().nullable().describe('Seconds of block time from cursor to headBlock'),
        pendingMigrations: z
          .array(z.string())
          .nullable()
          .describe('Migrations that the database lacks, so the index stands still; null if it cannot be read'),
      })
      .describe('The index behind trades, closed positions, agent lists and time series'),
    oracle: z.object({
      unsettled: z
        .array(z.string())
        .describe('Symbols whose price is from before a corporate action: nothing buys, no exit fires'),
      stale: z.array(z.string()).describe('Symbols whose price is too old to trade although their market trades'),
      market: z
        .enum(['open', 'closed'])
        .describe('closed: the markets of all tokens are closed, so trading waits and nothing is wrong'),
      nextOpen: unixSeconds('When the first closed market opens; null if none is closed').nullable(),
      secondsLeft: z
        .int()
        .nullable()
        .describe('Seconds until the first price of an open market is too old to trade; null if none is fresh'),
    }),
    restricted: z
      .array(tokenRestriction.extend({ vault: z.string(), symbol: z.string() }).meta({ id: 'RestrictedToken' }))
      .describe('Tokens that a vault cannot sell because of what their issuer did'),
    timelock: z
      .object({
        pending: z.int().describe('Operations that wait for their delay or their execution'),
        unannounced: z.array(hashOut).describe('Ids of those that the operator has not announced'),
      })
      .describe('Changes by the admin of the contracts, as the index has seen them'),
    facilitator: z
      .object({
        kind: z
          .enum(['none', 'own', 'hosted', 'unusable'])
          .describe(
            'Who settles registration fees: nobody, this Worker, or a hosted facilitator. unusable: fees are enabled but misconfigured',
          ),
        reachable: z.boolean().describe('Whether the hosted facilitator responds; true if there is none'),
      })
      .describe('Payment of the registration fee'),
    events: z
      .object({
        streams: z.int().describe('Open event streams'),
        blockNumber: digits('Last block whose events were published').nullable(),
        failing: z.boolean().describe('Whether the last attempt to publish events failed'),
      })
      .describe('Server-sent event streams'),
    vaults: z.object({
      withoutIdle: z
        .array(z.string())
        .describe('Vaults without idle USDC: only agents in simulated capital can open positions there'),
    }),
    paused: z.object({ registry: z.boolean(), vaults: z.array(z.string()).describe('Paused vaults') }),
    findings: z
      .array(finding)
      .describe(
        'Warnings and errors in how the contracts, the roles and the limits are set up, as `ats doctor` names them; read at most once a minute',
      ),
    problems: z.array(z.string()).describe('What the operator should look at even though trading is possible'),
  })
  .meta({ id: 'Readiness' })

export type ServiceReadiness = z.input<typeof serviceReadiness>
