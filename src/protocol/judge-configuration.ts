import type { Config } from '../config.ts'
import { type Finding, findingsOf } from './finding.ts'

const { ok, warning, wrong } = findingsOf('variables')

/** The chain id of the embedded chain, whose keys are public. */
const EMBEDDED_CHAIN_ID = 31337

/** Returns whether a chain is the embedded one, on which limits and shared keys endanger nobody. */
export const isEmbeddedChain = (chainId: number): boolean => chainId === EMBEDDED_CHAIN_ID

/** Judges the variables of a Worker without reading the chain. */
export function judgeConfiguration(config: Config): Finding[] {
  const found = config.problems.map(problem =>
    wrong(problem.split(':', 1)[0] ?? '', `A variable is unusable: ${problem}.`, 'correct it in the variables'),
  )
  const missing = (isMissing: boolean, name: string, sentence: string, isNeeded = false) => {
    if (!isMissing || found.some(({ subject }) => subject === name)) return
    const fix = `set ${name}`
    found.push(isNeeded ? wrong(name, sentence, fix) : warning(name, sentence, fix))
  }
  const { chain } = config
  missing(chain === undefined, 'CHAIN_ID, RPC_URL, CONTRACTS', 'No chain is configured.', true)
  missing(
    chain !== undefined && config.trading === undefined,
    'CONTRACTS',
    'CONTRACTS lacks the trading contracts, so nobody can trade.',
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
  if (chain?.mayRestart && !isEmbeddedChain(chain.id))
    found.push(
      wrong(
        'CHAIN_MAY_RESTART',
        'CHAIN_MAY_RESTART lets journals be dropped when the chain seems to be another one; only an embedded chain restarts.',
        'remove CHAIN_MAY_RESTART',
      ),
    )
  if (config.priceProvider?.kind === 'local' && chain !== undefined && !isEmbeddedChain(chain.id))
    found.push(
      warning(
        'PRICE_PROVIDER',
        'PRICE_PROVIDER is local: it posts old prices again as new ones.',
        'set PRICE_PROVIDER to http, coingecko or finnhub',
      ),
    )
  return found.length > 0 ? found : [ok('variables', 'All variables are set and usable.')]
}
