import type { DeploymentFacts, ServiceAccount } from '@agent-trading-service/protocol/deployment-facts'
import { type Finding, findingsOf } from '@agent-trading-service/protocol/finding'
import type { Power } from '@agent-trading-service/protocol/roles-of-powers'
import type { Address } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { checkReader } from '../../../../src/chain/call-service-reader.ts'
import { haltProblem } from '../../../../src/chain/halted-chain.ts'
import { judgeDeployment } from '../../../../src/doctor/judge-deployment.ts'
import { readDeploymentFacts } from '../../../../src/doctor/read-deployment-facts.ts'
import { judgeBalances, judgeGasPrice, readBalances } from './account-use.ts'
import { connectTo, nodeMessage, type OperatedDeployment, readConfig } from './connect.ts'
import { judgeConfiguration, judgeStartBlock } from './judge-configuration.ts'
import { checkMarket } from './market-check.ts'
import { judgeCancellers, judgeSharedPowers, type RoleHolder, readRoleHistory } from './role-holders.ts'
import { checkService } from './service-check.ts'
import { scheduledOperations } from './timelock.ts'
import type { Variables, VariablesSource } from './variables.ts'

/** Where the doctor looks. Without `url` it queries the service at BASE_URL; with null, none. */
export type DoctorOptions = VariablesSource & { url?: string | null | undefined }

const node = findingsOf('node')
const code = findingsOf('code')
const reader = findingsOf('reader')
const startBlock = findingsOf('start block')
const timelock = findingsOf('timelock')

/** Checks the configuration of a deployment, its chain and its service. Sends nothing. */
export async function examine(options: DoctorOptions): Promise<Finding[]> {
  const { variables, config } = readConfig(options)
  const url = options.url === undefined ? config.baseUrl : (options.url ?? undefined)
  const service =
    url === undefined ? undefined : await checkService(url.replace(/\/$/, ''), { ...config, env: options.env })
  const accounts = accountsOf(config, service?.accounts ?? [])
  const found = [...configurationFindings(config, variables, service?.accounts ?? []), ...(service?.findings ?? [])]
  if (config.chain === undefined || config.trading === undefined) return found
  const deployment = connectTo(variables, config)
  const reachable = await checkNode(deployment)
  found.push(...reachable)
  if (reachable.some(({ verdict }) => verdict === 'wrong')) return found
  const deployed = await checkCode(deployment)
  found.push(...deployed)
  if (deployed.some(({ subject, verdict }) => subject === 'Multicall3' && verdict === 'wrong')) return found
  found.push(await checkQuotes(deployment))
  const { payment } = config
  const { isEmbedded } = config.chain
  const canPost = config.oracleUpdaterKey !== undefined && config.priceProvider !== undefined
  const isPostedLater = canPost && service !== undefined && service.accounts.length === 0
  const facts = await readDeploymentFacts(deployment.chain, accounts, deployment.contracts)
  const setup = judgeDeployment(facts, {
    accounts,
    payment:
      payment !== undefined && payment !== 'unusable' && payment.network === `eip155:${config.chain.id}`
        ? payment
        : undefined,
    isEmbedded,
  })
  return [
    ...found,
    ...setup,
    ...(await checkMarket(deployment, facts, { isPostedLater, priceProvider: config.priceProvider })),
    ...judgeBalances(await readBalances(deployment.client, accounts)),
    ...judgeGasPrice(await deployment.client.getGasPrice(), config.gasPrices),
    ...(await checkHistory(deployment, facts, isEmbedded)),
    ...(await checkTimelock(deployment, facts)),
  ]
}

/** Returns the accounts of the keys, or the ones that the service names where the keys are its secrets. */
function accountsOf(config: OperatedDeployment['config'], shown: readonly ServiceAccount[]): ServiceAccount[] {
  const keys: [ServiceAccount['purpose'], readonly `0x${string}`[]][] = [
    ['executor', config.executorKeys],
    ['relayer', config.relayerKey ? [config.relayerKey] : []],
    ['updater', config.oracleUpdaterKey ? [config.oracleUpdaterKey] : []],
    ['keeper', config.keeper ? [config.keeper.key] : []],
    ['reporter', config.reporterKey ? [config.reporterKey] : []],
  ]
  return keys.flatMap(([purpose, own]) =>
    own.length > 0
      ? own.map(key => ({ purpose, address: privateKeyToAddress(key) }))
      : shown.filter(account => account.purpose === purpose),
  )
}

const variableOf: Partial<Record<ServiceAccount['purpose'], string>> = {
  executor: 'EXECUTOR_PRIVATE_KEY',
  relayer: 'RELAYER_PRIVATE_KEY',
  updater: 'ORACLE_UPDATER_PRIVATE_KEY',
  keeper: 'KEEPER_PRIVATE_KEY',
}

/** A key that the running service has need not be here. */
function configurationFindings(
  config: OperatedDeployment['config'],
  variables: Variables,
  shown: readonly ServiceAccount[],
): Finding[] {
  const there = new Set(shown.map(({ purpose }) => variableOf[purpose]))
  return judgeConfiguration(config, variables).filter(({ subject, verdict }) => verdict === 'ok' || !there.has(subject))
}

async function checkNode({ client, config, chain }: OperatedDeployment): Promise<Finding[]> {
  const expected = config.chain?.id
  try {
    const [chainId, block] = await Promise.all([client.getChainId(), client.getBlock()])
    if (chainId !== expected)
      return [
        node.wrong('RPC_URL', `The node serves chain ${chainId}, not ${expected}.`, 'correct RPC_URL or CHAIN_ID'),
      ]
    const problem = haltProblem(chain, block)
    if (problem !== undefined)
      return [node.warning('RPC_URL', `The nodes serve chain ${chainId}, but ${problem}.`, 'use another node')]
    return [node.ok('RPC_URL', `The node serves chain ${chainId}.`)]
  } catch (error) {
    return [node.wrong('RPC_URL', `The node cannot be reached: ${nodeMessage(error)}`, 'correct RPC_URL')]
  }
}

async function checkCode({ client, chain, contracts }: OperatedDeployment): Promise<Finding[]> {
  const named: Record<string, Address | undefined> = {
    ...chain.contracts,
    ...chain.trading,
    ...contracts,
    ...chain.tokens,
    ...chain.vaults,
  }
  return Promise.all(
    Object.entries(named).flatMap(([name, address]) =>
      address === undefined || name === 'ServiceReader' // checkQuotes says whether reads need it
        ? []
        : [
            client
              .getCode({ address })
              .then(found =>
                found === undefined
                  ? code.wrong(
                      name,
                      `${name} has no code at ${address}.`,
                      'npm run deploy:contracts -- --vars <deployment file>, which prints the addresses',
                    )
                  : code.ok(name, `${name} has code at ${address}.`),
              ),
          ],
    ),
  )
}

/** Makes the read of a quote, in the way the service does. */
async function checkQuotes({ chain }: OperatedDeployment): Promise<Finding> {
  const deploy = 'npm run deploy:contracts -- --reader <deployment file>'
  const { path, problem } = await checkReader(chain)
  if (path === 'deployed') return reader.ok('ServiceReader', 'Quotes are read through the deployed ServiceReader.')
  if (path === 'override')
    return reader.warning(
      'ServiceReader',
      'No ServiceReader of this version is deployed, so each quote sends its code, and only nodes with state overrides serve it.',
      deploy,
    )
  return reader.wrong(
    'ServiceReader',
    `The nodes return ${problem} to the read of a quote: they accept no state override of its size.`,
    `${deploy}, or use a node with state overrides`,
  )
}

/** Checks whether the timelock has an operation that the operator has not announced. */
async function checkTimelock(
  { chain, client, config }: OperatedDeployment,
  facts: DeploymentFacts,
): Promise<Finding[]> {
  if (facts.timelock === undefined) return []
  try {
    const operations = await scheduledOperations(chain, client, facts.timelock.address)
    const pending = operations.filter(({ state }) => state === 'waiting' || state === 'ready')
    const unannounced = pending.filter(({ id }) => !config.announcedOperations.includes(id))
    if (unannounced.length === 0)
      return [timelock.ok('Timelock', `The timelock has ${pending.length} pending operations, all of them announced.`)]
    return unannounced.map(({ id, readyAt = 0n }) =>
      timelock.warning(
        id,
        `The timelock has the operation ${id}, executable from ${isoTime(readyAt)} on, which ANNOUNCED_OPERATIONS does not name.`,
        `ats admin timelock list shows it; if you did not schedule it, ats admin timelock cancel ${id}, otherwise add it to ANNOUNCED_OPERATIONS`,
      ),
    )
  } catch {
    return [timelock.unchecked('Timelock', NO_OLD_LOGS('the operations of the timelock were'), NODE_WITH_LOGS)]
  }
}

const isoTime = (seconds: bigint) => new Date(Number(seconds) * 1_000).toISOString().replace('.000', '')
const NO_OLD_LOGS = (what: string) => `The node returns no logs since START_BLOCK, so ${what} not checked.`
const NODE_WITH_LOGS = 'pass --rpc with a node that serves logs of long ranges'

/** The powers whose holders act in an emergency or for the operator, each from an account of its own. */
const OPERATOR_POWERS: readonly Power[] = [
  'guardians',
  'timelock.proposers',
  'oracleForcers',
  'operators.agentRegistry',
  'operators.allocationManager',
  'operators.tokenRegistry',
  'operators.tradeRouter',
  'operators.vaults',
]

/**
 * Judges whether guardians, proposers and operators can pay for gas. Contracts, such as a multisig, pay with others'
 * accounts.
 */
async function checkHolders({ client }: OperatedDeployment, holders: readonly RoleHolder[]): Promise<Finding[]> {
  const named = new Map(
    holders.filter(({ power }) => OPERATOR_POWERS.includes(power)).map(({ account, power }) => [account, power]),
  )
  const acting = [...named].map(([address, power]) => ({ address, purpose: `account of ${power}` }))
  const codes = await Promise.all(acting.map(({ address }) => client.getCode({ address })))
  const paying = acting.filter((_, index) => codes[index] === undefined)
  const found = judgeBalances(await readBalances(client, paying))
  // An account that acts now and then stops no deploy.
  return found.map(finding => (finding.verdict === 'wrong' ? { ...finding, verdict: 'warning' } : finding))
}

/** Checks what only old logs tell: who else has a power, and whether the index starts early enough. */
async function checkHistory(
  deployment: OperatedDeployment,
  facts: DeploymentFacts,
  isEmbedded: boolean,
): Promise<Finding[]> {
  const { chain, client } = deployment
  const head = await client.getBlockNumber()
  if (chain.startBlock > head) return [judgeStartBlock(chain.startBlock, head, [])]
  try {
    const { holders, firstGrants } = await readRoleHistory(chain, facts, head)
    return [
      ...judgeSharedPowers(holders, isEmbedded),
      ...judgeCancellers(holders, isEmbedded),
      ...(isEmbedded ? [] : await checkHolders(deployment, holders)),
      judgeStartBlock(chain.startBlock, head, firstGrants),
    ]
  } catch {
    return [
      startBlock.unchecked('START_BLOCK', NO_OLD_LOGS('START_BLOCK and the holders of roles were'), NODE_WITH_LOGS),
    ]
  }
}
