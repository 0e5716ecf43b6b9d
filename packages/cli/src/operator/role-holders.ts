import { deployedRoles, type NamedContracts, roleHash } from '@agent-trading-service/protocol/roles-of-powers'
import { type Address, getAddress, pad, parseAbi, slice, toEventSelector } from 'viem'
import type { Chain } from '../../../../src/chain/configured-chain.ts'
import { call, optional, readTree } from '../../../../src/chain/read-tree.ts'
import type { RoleHolder } from '../../../../src/doctor/judge-accounts.ts'
import { getLogs } from '../../../../src/rpc/logs.ts'

const accessAbi = parseAbi(['function hasRole(bytes32 role, address account) view returns (bool)'])
const ROLE_GRANTED = toEventSelector('RoleGranted(bytes32,address,address)')

/** Who has which role, and the block of each contract's first grant, which its constructor makes. */
export type RoleHistory = { holders: RoleHolder[]; firstGrants: { contract: string; block: bigint | undefined }[] }

/**
 * Returns the present holders of every role, from the grants since START_BLOCK. Throws CHAIN_UNREACHABLE if the node returns
 * no logs of that range.
 */
export async function readRoleHistory(chain: Chain, places: NamedContracts, head: bigint): Promise<RoleHistory> {
  const roles = deployedRoles(places)
  const contracts = [...new Map(roles.map(({ contract, address }) => [address, contract]))]
  const logs = await getLogs(
    chain.rpc,
    { address: contracts.map(([address]) => address), topics: [ROLE_GRANTED] },
    { fromBlock: chain.startBlock, toBlock: head },
  )
  const accounts = [...new Set(logs.map(({ topics }) => addressOf(topics[2] ?? '0x')))]
  const pairs = roles.flatMap(role => accounts.map(account => ({ ...role, account })))
  const { values } = await readTree(
    chain,
    pairs.map(({ address, role, account }) =>
      optional(call({ address, abi: accessAbi }, 'hasRole', [roleHash(role), account])),
    ),
  )
  return {
    holders: pairs.flatMap(({ contract, role, power, account }, index) =>
      values[index] === true ? [{ contract, role, power, account }] : [],
    ),
    firstGrants: contracts.map(([address, contract]) => ({
      contract,
      block: logs.find(log => getAddress(log.address) === address)?.blockNumber,
    })),
  }
}

const addressOf = (topic: `0x${string}`): Address => getAddress(slice(pad(topic, { size: 32 }), 12))
