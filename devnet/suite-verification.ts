import { type Address, isAddressEqual, type PublicClient, zeroAddress } from 'viem'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { requestQueueAbi } from '../contracts-abi/request-queue.ts'
import { serviceReaderCode } from '../contracts-abi/service-reader-bytecode.ts'
import { timelockAbi } from '../contracts-abi/timelock.ts'
import { type Expectation, expectedExtension, expectedProtocol, on, show } from './expected-wiring.ts'
import { hasExtension, type ProtocolSuite, type SuiteConfig } from './suite-config.ts'
import { administered, DEFAULT_ADMIN_ROLE, namedAccounts, roleHolders, timelockRoles } from './suite-roles.ts'

/**
 * Reads every wired value and role back from the chain and returns how many; throws with the list of what differs.
 * Without the extension there is no timelock, and the deployer stays the admin.
 */
export async function verifySuite(
  client: PublicClient,
  config: SuiteConfig,
  suite: ProtocolSuite,
  deployer: Address,
): Promise<number> {
  const expectations = [
    ...expectedProtocol(config, suite),
    ...(hasExtension(suite) ? expectedExtension(config, suite) : []),
    ...expectedRoles(config, suite, deployer),
  ]
  const results = await client.multicall({ contracts: expectations.map(({ read }) => read), batchSize: 32_768 })
  const differences = expectations.flatMap(({ label, is }, index) => {
    const result = results[index]
    if (result?.status === 'success' && same(result.result, is)) return []
    const got =
      result?.status === 'success' ? show(result.result) : (result?.error.message.split('\n')[0] ?? 'no result')
    return [`${label}: expected ${show(is)}, the chain says ${got}`]
  })
  if (!suite.contracts.OrderBook) differences.push(...(await unnamedOrderBook(client, suite)))
  if (hasExtension(suite)) {
    differences.push(...(await foreignQueues(client, suite)))
    const { ServiceReader } = suite.contracts
    if ((await client.getCode({ address: ServiceReader })) !== serviceReaderCode)
      differences.push(`ServiceReader: the code at ${ServiceReader} is not that of this version`)
  }
  if (differences.length > 0) throw new Error(`The suite is not wired as configured:\n- ${differences.join('\n- ')}`)
  return expectations.length
}

/**
 * Returns the order book that the registry names although the deployment has none. A registry from before orders names
 * none.
 */
async function unnamedOrderBook(client: PublicClient, { contracts }: ProtocolSuite): Promise<string[]> {
  const read = { address: contracts.AgentRegistry, abi: agentRegistryAbi, functionName: 'orderBook' } as const
  const [book] = await client.multicall({ contracts: [read] })
  return book.status === 'failure' || isAddressEqual(book.result, zeroAddress)
    ? []
    : [`AgentRegistry.orderBook(): the deployment names no OrderBook, the chain says ${book.result}`]
}

/** Returns the vaults that do not name a request queue of their own. Nothing but the vault says where its queue is. */
async function foreignQueues(client: PublicClient, { vaults }: ProtocolSuite): Promise<string[]> {
  const entries = Object.entries(vaults)
  const queues = await client.multicall({
    contracts: entries.map(([, address]) => ({ address, abi: mandateVaultAbi, functionName: 'requestQueue' }) as const),
  })
  const owners = await client.multicall({
    contracts: queues.map(
      ({ result = zeroAddress }) => ({ address: result, abi: requestQueueAbi, functionName: 'vault' }) as const,
    ),
  })
  return entries.flatMap(([slug, address], index) => {
    const owner = owners[index]
    if (owner?.status === 'success' && isAddressEqual(owner.result, address)) return []
    return [`${slug}.requestQueue(): expected a queue of ${address}, the chain says ${queues[index]?.result}`]
  })
}

/** Returns, for each role and each known account, whether the account should have the role. */
function expectedRoles({ roles }: SuiteConfig, suite: ProtocolSuite, deployer: Address): Expectation[] {
  const { OrderBook } = suite.contracts
  const accounts = [...new Set([...namedAccounts(roles), deployer, zeroAddress, ...(OrderBook ? [OrderBook] : [])])]
  const holds = (name: string, address: Address, role: string, hash: string, holders: Address[]): Expectation[] =>
    accounts.map(account => ({
      ...on(name, address, agentRegistryAbi)(
        'hasRole',
        [hash, account],
        holders.some(holder => isAddressEqual(holder, account)),
      ),
      label: `${name}.hasRole(${role}, ${account})`,
    }))
  const granted = roleHolders(roles, suite)
    .filter(({ name }) => hasExtension(suite) || name !== 'GUARDIAN_ROLE')
    .flatMap(({ contract, address, name, role, holders }) => holds(contract, address, name, role, holders))
  if (!hasExtension(suite)) {
    const admins = administered(suite).flatMap(([name, address]) =>
      holds(name, address, 'DEFAULT_ADMIN_ROLE', DEFAULT_ADMIN_ROLE, [deployer]),
    )
    return [...admins, ...granted]
  }
  const timelock = suite.contracts.Timelock
  return [
    on('Timelock', timelock, timelockAbi)('getMinDelay', [], roles.timelock.delaySeconds),
    ...timelockRoles(roles).flatMap(({ name, role, holders }) => holds('Timelock', timelock, name, role, holders)),
    ...holds('Timelock', timelock, 'DEFAULT_ADMIN_ROLE', DEFAULT_ADMIN_ROLE, []),
    ...administered(suite).flatMap(([name, address]) => {
      const contract = on(name, address, agentRegistryAbi)
      return [
        contract('defaultAdmin', [], timelock),
        contract('pendingDefaultAdmin', [], zeroAddress),
        ...holds(name, address, 'DEFAULT_ADMIN_ROLE', DEFAULT_ADMIN_ROLE, []),
      ]
    }),
    ...granted,
  ]
}

function same(got: unknown, expected: unknown): boolean {
  if (typeof got === 'string' && typeof expected === 'string') return got.toLowerCase() === expected.toLowerCase()
  if (typeof expected !== 'object' || expected === null) return got === expected
  if (typeof got !== 'object' || got === null) return false
  return Object.entries(expected).every(([key, value]) => same((got as Record<string, unknown>)[key], value))
}
