import type { PublicClient } from 'viem'
import { ACCOUNTS, devnetAccounts } from './accounts.ts'
import { startAnvil } from './anvil.ts'
import { type Controls, controls } from './controls.ts'
import { DEPLOYMENT_FILE, type Deployment, removeDeployment, writeDeployment } from './deployment.ts'
import { type MarketMaker, startMarketMaker } from './market-maker.ts'
import { seed } from './seed.ts'
import { listings, listingsInTiers, vaults as seedVaults } from './seed-config.ts'
import { connect } from './sender.ts'
import { startReports } from './signed-prices.ts'

export type DevnetOptions = {
  /** The chain's port; a free one by default. */
  port?: number | undefined
  chainId?: number | undefined
  /** The service's URL, which is only written to the deployment. */
  baseUrl?: string | undefined
  /** Where to write the deployment file; the file is removed when the devnet stops. */
  deploymentFile?: string | undefined
  /** How long a transaction waits for its block, 250 ms by default. */
  blockMs?: number | undefined
  /** The time between two blocks without a transaction, a second by default. */
  emptyBlockMs?: number | undefined
  /** The chain's first time in Unix seconds, now by default; `increaseTime` catches up with one of the past. */
  startsAt?: number | undefined
  /** Gives each token several pools, of which an empty one, an expensive one and one that is not listed. */
  hasTiers?: boolean | undefined
  /** Deploys contracts with protocol.md's functions only. */
  protocolOnly?: boolean | undefined
  /** Where prices come from: the updater's key by default, or signed reports. */
  priceSource?: 'updater' | 'reports' | undefined
}

export type Devnet = Controls & {
  rpcUrl: string
  chainId: number
  deployment: Deployment
  client: PublicClient
  /** Trades the pools to the oracle's prices. Pause it to let a pool drift. */
  marketMaker: Pick<MarketMaker, 'pause' | 'resume'>
  /** Pauses and resumes mining; see `Anvil.setMining`. */
  setMining(mining: boolean): Promise<void>
  /** Changes the pace of its blocks; see `Anvil.setBlockTime`. */
  setBlockTime(blockMs: number): Promise<void>
  /** Resolves when the chain has exited: with an error if it was not stopped by `stop`. */
  exited: Promise<Error | undefined>
  stop(): Promise<void>
}

export { DEPLOYMENT_FILE, type Deployment }

// Half the staleness window, so that prices stay fresh on a chain that runs for days.
const REFRESH_MS = 12 * 60 * 60 * 1000

/** Starts the embedded chain with contracts, prices, pools and funds. Addresses are the same at every start. */
export async function startDevnet(options: DevnetOptions = {}): Promise<Devnet> {
  const {
    port,
    chainId = 31337,
    baseUrl = 'http://127.0.0.1:8787',
    deploymentFile,
    blockMs,
    emptyBlockMs,
    startsAt,
    hasTiers = false,
    protocolOnly,
    priceSource,
  } = options
  const anvil = await startAnvil({ port, chainId, accounts: ACCOUNTS, blockMs, emptyBlockMs, startsAt, mines: false })
  try {
    const { rpcUrl } = anvil
    const client = connect(rpcUrl, chainId)
    const accounts = devnetAccounts()
    const { contracts, vaults, tokens, markets } = await seed(client, accounts, {
      protocolOnly,
      priceSource,
      venue: { listings: hasTiers && !protocolOnly ? listingsInTiers : listings, vaults: seedVaults },
    })
    await anvil.setMining(true)
    const placed = { chainId, rpcUrl, baseUrl, contracts, vaults, tokens, accounts }
    const reports = priceSource === 'reports' ? await startReports(client, placed) : undefined
    const deployment: Deployment = { ...placed, ...(reports && { reports: reports.deployment }) }
    const devnetControls = controls(deployment)
    const chain = { rpcUrl, client, oracle: contracts.PriceOracle, swapRouter: contracts.SwapRouter, markets }
    const marketMaker = startMarketMaker(chain, accounts.marketMaker.privateKey)
    const refresh = setInterval(() => devnetControls.refreshPrices().catch(() => {}), REFRESH_MS)
    refresh.unref()
    if (deploymentFile) writeDeployment(deployment, deploymentFile)

    const leave = async () => {
      clearInterval(refresh)
      if (deploymentFile) removeDeployment(deployment, deploymentFile)
      await marketMaker.stop()
      await reports?.stop()
    }
    const exited = anvil.exited.then(async reason => {
      await leave()
      return reason
    })
    return {
      ...devnetControls,
      rpcUrl,
      chainId,
      deployment,
      client,
      marketMaker,
      setMining: anvil.setMining,
      setBlockTime: anvil.setBlockTime,
      exited,
      async stop() {
        await leave()
        await anvil.stop()
      },
    }
  } catch (error) {
    await anvil.stop()
    throw error
  }
}
