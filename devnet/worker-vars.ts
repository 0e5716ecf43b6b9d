import { isWithoutMoney } from '@agent-trading-service/protocol/known-chain'
import type { Address } from 'viem'
import type { Deployment } from './deployment.ts'

/** The addresses of a deployment that the service needs, on any chain. */
export type Addresses = {
  chainId: number
  contracts: Record<string, Address>
  tokens: Record<string, Address>
  vaults: Record<string, Address>
}

/** Returns the variables that name the contracts of a Worker; none of them is secret. */
export function addressVars({ chainId, contracts, tokens, vaults }: Addresses): Record<string, string> {
  return {
    CHAIN_ID: `${chainId}`,
    CONTRACTS: JSON.stringify(contracts),
    TOKENS: JSON.stringify(tokens),
    VAULTS: JSON.stringify(vaults),
  }
}

/** Returns the variables and secrets of a Worker that serves the embedded chain. */
export function workerVars(deployment: Deployment): Record<string, string> {
  const { rpcUrl, baseUrl, accounts, reports } = deployment
  return {
    ...addressVars(deployment),
    RPC_URL: rpcUrl,
    DEVELOPMENT_CHAIN: isWithoutMoney(deployment.chainId) ? 'true' : 'embedded',
    BASE_URL: baseUrl,
    EXECUTOR_PRIVATE_KEY: accounts.executor.privateKey,
    RELAYER_PRIVATE_KEY: accounts.relayer.privateKey,
    ORACLE_UPDATER_PRIVATE_KEY: accounts.oracleUpdater.privateKey,
    KEEPER_PRIVATE_KEY: accounts.keeper.privateKey,
    REPORTER_PRIVATE_KEY: accounts.reporter.privateKey,
    // Exits fire at any hour, so that a stop-loss can be tried while the stock exchange is closed.
    MARKET_SESSIONS: 'off',
    // `npm run devnet:price` sets the prices; a refresh posts them again.
    PRICE_PROVIDER: 'local',
    ...(reports && {
      DATA_STREAMS_URL: reports.url,
      DATA_STREAMS_KEY: reports.key,
      DATA_STREAMS_SECRET: reports.secret,
    }),
    // The fee is paid on this chain, in its USDC, to FeeManager's treasury.
    X402_ENABLED: 'true',
  }
}

/**
 * Variables for a service that takes the embedded chain for a real one: its gas costs more than that of the known
 * chains.
 */
export const asRealChain: Record<string, string> = { DEVELOPMENT_CHAIN: 'false', GAS_PRICE_GWEI: '100,1000' }

const NO_GAS_LIMIT = '900000000000000,900000000000000'
/** Variables for load on few agents: budgets that nothing exhausts. */
export const unlimitedGas: Record<string, string> = {
  GAS_BUDGET_AGENT: NO_GAS_LIMIT,
  GAS_BUDGET_LANE: NO_GAS_LIMIT,
}

/** Variables for clients that the service does not limit. */
export const unlimitedRequests: Record<string, string> = { REQUEST_BUDGET_ADDRESS: '0', REQUEST_BUDGET_ACCOUNT: '0' }

/** Variables for tests that trade as fast as the machine allows: ten times the default budget of agents per minute. */
export const tenfoldGas: Record<string, string> = {
  GAS_BUDGET_AGENT: '60000000,300000000',
}
