import type { Address } from 'viem'
import type { Deployment } from './deployment.ts'

/** What deployments of every chain have: the addresses that the service works with. */
export type Addresses = {
  chainId: number
  contracts: Record<string, Address>
  tokens: Record<string, Address>
  vaults: Record<string, Address>
}

/** The variables that say which contracts a Worker serves; none of them is secret. */
export function addressVars({ chainId, contracts, tokens, vaults }: Addresses): Record<string, string> {
  return {
    CHAIN_ID: `${chainId}`,
    CONTRACTS: JSON.stringify(contracts),
    TOKENS: JSON.stringify(tokens),
    VAULTS: JSON.stringify(vaults),
  }
}

/** The variables and secrets that make a Worker serve the embedded chain. */
export function workerVars(deployment: Deployment): Record<string, string> {
  const { rpcUrl, baseUrl, accounts } = deployment
  return {
    ...addressVars(deployment),
    RPC_URL: rpcUrl,
    BASE_URL: baseUrl,
    EXECUTOR_PRIVATE_KEY: accounts.executor.privateKey,
    RELAYER_PRIVATE_KEY: accounts.relayer.privateKey,
    ORACLE_UPDATER_PRIVATE_KEY: accounts.oracleUpdater.privateKey,
    KEEPER_PRIVATE_KEY: accounts.keeper.privateKey,
    // Nobody wants to wait for New York to try a stop-loss.
    MARKET_SESSIONS: 'off',
    // Prices are what `npm run devnet:price` says; a refresh makes them fresh again.
    PRICE_PROVIDER: 'local',
    // The fee is paid on this chain, in its USDC, to the FeeManager's treasury.
    X402_ENABLED: 'true',
  }
}
