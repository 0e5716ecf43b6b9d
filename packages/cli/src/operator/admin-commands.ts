import { AgentStatus } from '@agent-trading-service/protocol/enums'
import { deployedRoles, type Power, powerNames, roleHash } from '@agent-trading-service/protocol/roles-of-powers'
import { type Address, erc20Abi, getAddress, isAddress, parseUnits } from 'viem'
import { Failure } from '../failure.ts'
import { type AdminCall, adminCall } from './admin-call.ts'
import { type AdminContext, vaultNamed } from './admin-context.ts'
import type { CallGroup } from './admin-plan.ts'
import { missingRouterRoles } from './role-holders.ts'

// The calls behind each command. Who may make them, and whether the timelock makes them, is decided afterwards.

/** Returns the calls that grant a power to an account, or revoke it. */
export function roleCalls(
  { book }: AdminContext,
  verb: 'grant' | 'revoke',
  power: Power,
  account: Address,
): AdminCall[] {
  if (power === 'relayer') {
    if (verb === 'grant') return [adminCall(book, 'FeeManager', 'setRegistrationFeeRelayer', [account])]
    throw new Failure('usage', 'FeeManager always names a relayer.', {
      code: 'RELAYER_NEEDED',
      remedy: 'Name another one: ats admin grant relayer <account>',
    })
  }
  const roles = deployedRoles(book).filter(role => role.power === power)
  return roles.map(({ contract, role }) => adminCall(book, contract, `${verb}Role`, [roleHash(role), account]))
}

/** Returns the calls that replace an account by another one in a power. */
export const rotationCalls = (
  context: AdminContext,
  { power, from, to, keep }: { power: Power; from: Address; to: Address; keep: boolean },
): AdminCall[] => [
  ...roleCalls(context, 'grant', power, to),
  ...(keep || power === 'relayer' ? [] : roleCalls(context, 'revoke', power, from)),
]

export type PauseTarget = 'registry' | 'trading' | 'liquidity' | 'everything'

/**
 * Returns the calls that pause or resume registrations, or trading, or deposits and redemptions of vaults. The registry
 * is left out if it is so already, because it would revert.
 */
export async function pauseCalls(
  { book, client }: AdminContext,
  target: PauseTarget,
  slugs: readonly string[],
  paused: boolean,
): Promise<AdminCall[]> {
  const vaults = slugs.length > 0 ? slugs : Object.keys(book.vaults)
  for (const slug of vaults) vaultNamed(book, slug)
  const trading = vaults.map(slug => adminCall(book, slug, 'setTradingPaused', [paused]))
  const liquidity = vaults.map(slug => adminCall(book, slug, 'setLiquidityPaused', [paused]))
  const registry = adminCall(book, 'AgentRegistry', paused ? 'pause' : 'unpause', [])
  const isPaused = await client.readContract({ ...registry, functionName: 'paused', args: [] })
  const registrations = isPaused === paused ? [] : [registry]
  if (target === 'registry' && registrations.length === 0)
    throw new Failure('refused', `The registry is ${paused ? 'paused' : 'open'} already.`, {
      code: 'NOTHING_TO_DO',
      remedy: 'Nothing is to do.',
    })
  const calls = {
    registry: registrations,
    trading,
    liquidity,
    everything: [...trading, ...liquidity, ...registrations],
  }
  return calls[target]
}

export const suspendCall = ({ book }: AdminContext, agentId: bigint): AdminCall =>
  adminCall(book, 'AgentRegistry', 'setAgentStatus', [agentId, AgentStatus.Suspended])
export const reinstateCall = ({ book }: AdminContext, agentId: bigint): AdminCall =>
  adminCall(book, 'AgentRegistry', 'setAgentStatus', [agentId, AgentStatus.Active])

/** Returns the call that sells a position of an agent that is not Active. */
export const forceCloseCall = ({ book }: AdminContext, positionId: bigint): AdminCall =>
  adminCall(book, 'TradeRouter', 'forceClose', [positionId])

/** Returns the calls that deposit USDC into a vault; the first allows the vault to take it. */
export async function depositCalls(
  { book, client }: AdminContext,
  { slug, usdc, sender, receiver }: { slug: string; usdc: bigint; sender: Address; receiver: Address },
): Promise<AdminCall[]> {
  const vault = vaultNamed(book, slug)
  const deposit = adminCall(book, slug, 'deposit', [usdc, receiver])
  const asset = await client.readContract({ address: vault, abi: deposit.abi, functionName: 'asset' })
  const token = { address: asset as Address, abi: erc20Abi }
  const [allowance, balance] = await Promise.all([
    client.readContract({ ...token, functionName: 'allowance', args: [sender, vault] }),
    client.readContract({ ...token, functionName: 'balanceOf', args: [sender] }),
  ])
  if (balance < usdc)
    throw new Failure('refused', `${sender} has ${balance} base units of USDC; ${usdc} are to be deposited.`, {
      code: 'USDC_MISSING',
      remedy: `Send USDC (${asset}) to ${sender}.`,
    })
  if (allowance >= usdc) return [deposit]
  return [{ ...token, contract: 'USDC', functionName: 'approve', args: [vault, usdc] }, deposit]
}

/** Returns the calls that post prices, given as SYMBOL=USD. With `force` they are not bounded. */
export function priceCalls({ book }: AdminContext, prices: readonly string[], force: boolean): AdminCall[] {
  return prices.map(text => {
    const [, symbol = '', usd = ''] = /^([\w.-]+)=(\d+(?:\.\d{1,8})?)$/.exec(text) ?? []
    const token = book.tokens[symbol]
    if (token === undefined || Number(usd) === 0)
      throw new Failure(
        'usage',
        `${text} is no price; expected SYMBOL=USD with one of ${Object.keys(book.tokens).join(', ')}.`,
        {
          code: 'PRICE_INVALID',
          remedy: 'Write it as in NVDA=180.25.',
        },
      )
    return adminCall(book, 'PriceOracle', force ? 'forcePrice' : 'setPrice', [token, parseUnits(usd, 8)])
  })
}

/** Returns the batch that replaces the oracle: it continues the prices of the old one, and the vaults follow. */
export async function oracleMigration({ book, client }: AdminContext, oracle: Address): Promise<CallGroup[]> {
  const registry = adminCall(book, 'TokenRegistry', 'setPriceOracle', [oracle])
  const old = await client.readContract({ ...registry, functionName: 'priceOracle', args: [] })
  if (old === oracle)
    throw new Failure('refused', `${oracle} is the oracle already.`, {
      code: 'NOTHING_TO_DO',
      remedy: 'Name it as PriceOracle in CONTRACTS and deploy the Worker.',
    })
  const vaults = Object.keys(book.vaults)
  const tokens = await Promise.all(
    vaults.map(async slug => {
      const { address, abi } = adminCall(book, slug, 'allowedTokenCount', [])
      const count = (await client.readContract({ address, abi, functionName: 'allowedTokenCount' })) as bigint
      const indexes = Array.from({ length: Number(count) }, (_, index) => BigInt(index))
      return Promise.all(
        indexes.map(index => client.readContract({ address, abi, functionName: 'allowedTokenAt', args: [index] })),
      )
    }),
  )
  const calls = [
    ...(await acceptance({ book, client }, 'PriceOracle', oracle)),
    adminCall(book, 'PriceOracle', 'inheritFrom', [old, [...new Set(tokens.flat() as Address[])]], oracle),
    registry,
    ...vaults.map(slug => adminCall(book, slug, 'syncPriceOracle', [])),
  ]
  return [{ calls }]
}

/**
 * Returns the batch that replaces the router: the timelock accepts it, and all contracts that trust a router switch at
 * once.
 */
export async function routerMigration({ book, client }: AdminContext, router: Address): Promise<CallGroup[]> {
  const calls = [
    ...(await acceptance({ book, client }, 'TradeRouter', router)),
    ...Object.keys(book.vaults).map(slug => adminCall(book, slug, 'setTradeRouter', [router])),
    adminCall(book, 'PositionManager', 'setTradeRouter', [router]),
    adminCall(book, 'AllocationManager', 'setTradeRouter', [router]),
  ]
  return [{ calls }]
}

/**
 * Throws `ROLES_MISSING` where a new router lacks a role of the old one: its holders would wait for the delay once
 * more.
 */
export async function checkRouterRoles({ chain, client, book }: AdminContext, router: Address): Promise<void> {
  const missing = await missingRouterRoles(chain, book, await client.getBlockNumber(), router)
  if (missing.length === 0) return
  const roles = missing.map(({ role, account }) => `${role} of ${account}`).join(' and ')
  throw new Failure('refused', `The router ${router} lacks ${roles}, which the present one has.`, {
    code: 'ROLES_MISSING',
    remedy:
      'Grant them before you offer the router to the timelock; without its role, the order book executes nothing.',
  })
}

/** Returns the call by which the timelock accepts a new contract; none if it is its admin already. */
async function acceptance(
  { book, client }: Pick<AdminContext, 'book' | 'client'>,
  name: 'PriceOracle' | 'TradeRouter',
  address: Address,
): Promise<AdminCall[]> {
  const call = adminCall(book, name, 'acceptDefaultAdminTransfer', [], address)
  const read = (functionName: string) => client.readContract({ address, abi: call.abi, functionName })
  const [admin, pending] = await Promise.all([read('defaultAdmin'), read('pendingDefaultAdmin')]).catch(() => {
    throw new Failure('refused', `There is no ${name} at ${address}.`, {
      code: 'CONTRACT_UNKNOWN',
      remedy: 'Deploy it first, with an account of yours as its admin.',
    })
  })
  const { Timelock } = book.contracts
  if (admin === Timelock) return []
  // Offered already, or in a state in which the operation was planned before.
  if (pending === Timelock) return [call]
  throw new Failure('refused', `${name} ${address} is administered by ${admin} and not offered to the timelock.`, {
    code: 'ADMIN_NOT_OFFERED',
    remedy: `Call its beginDefaultAdminTransfer with ${Timelock} first.`,
  })
}

/** Returns an address with its checksum. Throws `ADDRESS_INVALID`. */
export function toAddress(text: string): Address {
  if (isAddress(text, { strict: false })) return getAddress(text)
  throw new Failure('usage', `${text} is not an address.`, {
    code: 'ADDRESS_INVALID',
    remedy: 'Pass 0x and 40 hex digits.',
  })
}

/** Returns a power by its name. Throws `POWER_UNKNOWN`. */
export function toPower(text: string): Power {
  const power = powerNames.find(name => name === text)
  if (power) return power
  throw new Failure('usage', `${text} is no power; there are ${powerNames.join(', ')}.`, {
    code: 'POWER_UNKNOWN',
    remedy: 'Pass one of these names.',
  })
}
