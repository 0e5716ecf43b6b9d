import type { Deployment } from './deployment.ts'

/** The variables and secrets that make a Worker serve this deployment. */
export function workerVars({
  chainId,
  rpcUrl,
  baseUrl,
  contracts,
  tokens,
  vaults,
  accounts,
}: Deployment): Record<string, string> {
  return {
    CHAIN_ID: `${chainId}`,
    RPC_URL: rpcUrl,
    BASE_URL: baseUrl,
    CONTRACTS: JSON.stringify(contracts),
    TOKENS: JSON.stringify(tokens),
    VAULTS: JSON.stringify(vaults),
    EXECUTOR_PRIVATE_KEY: accounts.executor.privateKey,
    RELAYER_PRIVATE_KEY: accounts.relayer.privateKey,
    ORACLE_UPDATER_PRIVATE_KEY: accounts.oracleUpdater.privateKey,
    KEEPER_PRIVATE_KEY: accounts.keeper.privateKey,
  }
}
