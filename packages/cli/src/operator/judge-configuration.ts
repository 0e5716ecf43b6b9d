import { type Finding, findingsOf } from '@agent-trading-service/protocol/finding'
import { tradingContracts } from '../../../../src/config/variables.ts'
import type { OperatedDeployment } from './connect.ts'
import { namedContracts, unsetOfChain, type Variables } from './variables.ts'

const { ok, warning, wrong } = findingsOf('variables')

/** Judges the variables of a Worker without reading the chain. A finding names only what is missing or wrong. */
export function judgeConfiguration(config: OperatedDeployment['config'], variables: Variables): Finding[] {
  const found = config.problems.map(problem =>
    wrong(problem.split(':', 1)[0] ?? '', `A variable is unusable: ${problem}.`, 'correct it in the variables'),
  )
  const missing = (isMissing: boolean, name: string, sentence: string, isNeeded = false) => {
    if (!isMissing || found.some(({ subject }) => subject === name)) return
    const fix = `set ${name}`
    found.push(isNeeded ? wrong(name, sentence, fix) : warning(name, sentence, fix))
  }
  const { chain } = config
  const unset = unsetOfChain(variables)
  missing(unset.length > 0, unset.join(', '), 'No chain is configured.', true)
  const named = namedContracts(variables)
  const lacking = Object.keys(tradingContracts.shape).filter(name => named[name] === undefined)
  missing(
    chain !== undefined && config.trading === undefined,
    `${lacking.join(', ')} in CONTRACTS`,
    `CONTRACTS lacks ${lacking.join(', ')}, so nobody can trade.`,
    true,
  )
  missing(config.executorKeys.length === 0, 'EXECUTOR_PRIVATE_KEY', 'No account relays intents.', true)
  missing(config.relayerKey === undefined, 'RELAYER_PRIVATE_KEY', 'No account relays registrations.')
  missing(config.oracleUpdaterKey === undefined, 'ORACLE_UPDATER_PRIVATE_KEY', 'No account posts prices.')
  missing(config.keeper === undefined, 'KEEPER_PRIVATE_KEY', 'No account fires due exits.')
  missing(config.priceProvider === undefined, 'PRICE_PROVIDER', 'Prices come from nowhere, so they grow stale.')
  missing(config.baseUrl === undefined, 'BASE_URL', 'Links in responses and x402 payments have no base URL.')
  missing(
    config.operatorSecret === undefined,
    'OPERATOR_SECRET',
    'Nobody can close an intake, replay the index or see balances.',
  )
  if (chain?.isDevelopment && !chain.isEmbedded)
    found.push(
      wrong(
        'DEVELOPMENT_CHAIN',
        'DEVELOPMENT_CHAIN permits what a real chain must not, such as webhooks to private addresses.',
        'remove DEVELOPMENT_CHAIN',
      ),
    )
  if (config.priceProvider?.kind === 'local' && !chain?.isEmbedded)
    found.push(
      warning(
        'PRICE_PROVIDER',
        'PRICE_PROVIDER is local: it posts old prices again as new ones.',
        'set PRICE_PROVIDER to http, coingecko or finnhub',
      ),
    )
  return found.length > 0 ? found : [ok('variables', 'All variables are set and usable.')]
}

/**
 * Judges the block from which the index reads. `firstEvents` are the blocks of the first event of each contract at or
 * after it; undefined for a contract that has none, which was deployed before.
 */
export function judgeStartBlock(
  startBlock: bigint,
  head: bigint,
  firstEvents: readonly { contract: string; block: bigint | undefined }[],
): Finding {
  const { ok, warning, wrong } = findingsOf('start block')
  const [earliest] = firstEvents.flatMap(({ block }) => block ?? []).sort((a, b) => (a < b ? -1 : 1))
  const fix = 'set START_BLOCK to `deployedAtBlock` of the deployment file, then ats admin replay'
  if (startBlock > head) return wrong('START_BLOCK', `START_BLOCK is ${startBlock}; the newest block is ${head}.`, fix)
  const missed = firstEvents.filter(({ block }) => block === undefined).map(({ contract }) => contract)
  if (missed.length > 0)
    return wrong(
      'START_BLOCK',
      `START_BLOCK ${startBlock} is after the deployment of ${missed.join(', ')}, so the index misses events.`,
      fix,
    )
  if (earliest !== undefined && earliest - startBlock > MAX_EARLY_BLOCKS)
    return warning(
      'START_BLOCK',
      `START_BLOCK ${startBlock} is ${earliest - startBlock} blocks before the deployment, which the index reads for nothing.`,
      `set START_BLOCK to ${earliest}`,
    )
  return ok('START_BLOCK', `START_BLOCK ${startBlock} is at or shortly before the deployment.`)
}

/** An index reads that many empty blocks in a few requests. */
const MAX_EARLY_BLOCKS = 1_000_000n
