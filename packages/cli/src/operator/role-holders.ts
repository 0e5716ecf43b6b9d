import { type Finding, findingsOf } from '@agent-trading-service/protocol/finding'
import {
  deployedRoles,
  MIN_GUARDIANS,
  type NamedContracts,
  type Power,
  powers,
  type RoleName,
  roleHash,
} from '@agent-trading-service/protocol/roles-of-powers'
import { type Address, getAddress, pad, parseAbi, slice, toEventSelector } from 'viem'
import { call, optional, readTree } from '../../../../src/chain/read-tree.ts'
import { getLogs } from '../../../../src/rpc/logs.ts'
import type { OperatedDeployment } from './connect.ts'

const roles = findingsOf('role')
const accessAbi = parseAbi(['function hasRole(bytes32 role, address account) view returns (bool)'])
const ROLE_GRANTED = toEventSelector('RoleGranted(bytes32,address,address)')

/** A role and an account that has it. */
export type RoleHolder = { contract: string; role: RoleName; power: Power; account: Address }

/** Who has which role, and the block of each contract's first grant, which its constructor makes. */
export type RoleHistory = { holders: RoleHolder[]; firstGrants: { contract: string; block: bigint | undefined }[] }

/**
 * Returns the present holders of every role, from the grants since START_BLOCK. Throws CHAIN_UNREACHABLE if the node
 * returns no logs of that range.
 */
export async function readRoleHistory(
  chain: OperatedDeployment['chain'],
  places: NamedContracts,
  head: bigint,
): Promise<RoleHistory> {
  const deployed = deployedRoles(places)
  const contracts = [...new Map(deployed.map(({ contract, address }) => [address, contract]))]
  const logs = await getLogs(
    chain.rpc,
    { address: contracts.map(([address]) => address), topics: [ROLE_GRANTED] },
    { fromBlock: chain.startBlock, toBlock: head },
  )
  const accounts = [...new Set(logs.map(({ topics }) => addressOf(topics[2] ?? '0x')))]
  const pairs = deployed.flatMap(role => accounts.map(account => ({ ...role, account })))
  const { values } = await readTree(
    chain,
    pairs.map(({ address, role, account }) =>
      optional(call({ address, abi: accessAbi }, 'hasRole', [roleHash(role), account])),
    ),
  )
  const held = pairs.filter((_, index) => values[index] === true)
  return {
    holders: held
      .filter(holder => isOfPower(holder, held))
      .map(({ contract, role, power, account }) => ({ contract, role, power, account })),
    firstGrants: contracts.map(([address, contract]) => ({
      contract,
      block: logs.find(log => getAddress(log.address) === address)?.blockNumber,
    })),
  }
}

/**
 * Whether an account has a role by this power. A role that belongs to several powers counts for those whose first role
 * it has.
 */
function isOfPower(holder: RoleHolder, held: readonly RoleHolder[]): boolean {
  const own = held.filter(({ account }) => account === holder.account)
  const hasFirst = (power: Power) => own.some(each => each.power === power && each.role === powers[power][0]?.role)
  const others = own.filter(
    each => each.contract === holder.contract && each.role === holder.role && each.power !== holder.power,
  )
  return hasFirst(holder.power) || !others.some(({ power }) => hasFirst(power))
}

const addressOf = (topic: `0x${string}`): Address => getAddress(slice(pad(topic, { size: 32 }), 12))

/**
 * Returns the roles of the present router that a new one does not give to the same accounts, the order book among them.
 */
export async function missingRouterRoles(
  chain: OperatedDeployment['chain'],
  places: NamedContracts,
  head: bigint,
  router: Address,
): Promise<RoleHolder[]> {
  const { holders } = await readRoleHistory(chain, places, head)
  const held = holders.filter(({ contract }) => contract === 'TradeRouter')
  const { values } = await readTree(
    chain,
    held.map(({ role, account }) => call({ address: router, abi: accessAbi }, 'hasRole', [roleHash(role), account])),
  )
  return held.filter((_, index) => values[index] !== true)
}

/**
 * Judges whether somebody remains to cancel the dismissal of each canceller. On the embedded chain one key suffices.
 */
export function judgeCancellers(holders: readonly RoleHolder[], isEmbedded: boolean): Finding[] {
  if (isEmbedded) return []
  const having = (role: RoleName) =>
    holders.filter(holder => holder.contract === 'Timelock' && holder.role === role).map(({ account }) => account)
  const proposers = having('PROPOSER_ROLE')
  const cancellers = new Set(having('CANCELLER_ROLE').filter(account => !proposers.includes(account)))
  return cancellers.size >= MIN_GUARDIANS
    ? [roles.ok('guardians', `${cancellers.size} accounts besides the proposers cancel operations of the timelock.`)]
    : [
        roles.wrong(
          'guardians',
          `${cancellers.size} of ${MIN_GUARDIANS} accounts besides the proposers can cancel operations of the timelock; a stolen proposer's key can dismiss the last one.`,
          'ats admin grant guardians <another account>',
        ),
      ]
}

/** Judges whether one account holds two powers. On the embedded chain one may. */
export function judgeSharedPowers(holders: readonly RoleHolder[], isEmbedded: boolean): Finding[] {
  if (isEmbedded) return []
  const held = new Map<Address, Set<Power>>()
  for (const { account, power } of holders) held.set(account, (held.get(account) ?? new Set()).add(power))
  return [...held].map(([account, own]) => {
    const names = [...own]
    return names.length === 1
      ? roles.ok(account, `${account} holds ${names[0]} and nothing else.`)
      : roles.warning(
          account,
          `${account} holds ${names.join(' and ')}: a thief of this key has all of them.`,
          `ats admin rotate ${names.at(-1)} --from-account ${account} --to <new account>`,
        )
  })
}
