import { type Address, createPublicClient, createWalletClient, getContractAddress, http, parseUnits } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { scaledStockTokenAbi } from '../../contracts-abi/scaled-stock-token.ts'
import { stockIssuerAbi } from '../../contracts-abi/stock-issuer.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { uniswapV3SwapAdapterAbi } from '../../contracts-abi/uniswap-v3-swap-adapter.ts'
import type { Account } from '../../devnet/accounts.ts'
import { controls } from '../../devnet/controls.ts'
import type { Deployment } from '../../devnet/deployment.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import type { Sender } from '../../devnet/sender.ts'
import { addLiquidity, approveUniswap, createPool, rememberPrices, type Uniswap } from '../../devnet/uniswap.ts'

const FEE = 500
const DECIMALS = 18
const DEPTH_USDC = parseUnits('5000000', 6)

/**
 * Issues a stock token, lists it with a pool and a price in US dollars, and enables it in a vault. Returns its address.
 */
export async function listToken(
  deployment: Deployment,
  { symbol, name, price: usd, vault }: { symbol: string; name: string; price: string; vault: Address },
): Promise<Address> {
  const { accounts, contracts } = deployment
  const chain = controls(deployment)
  const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
  /** Sends with the gas that a new pool takes, which `chain.send` does not allow. */
  const senderOf = ({ privateKey }: Account) => {
    const account = privateKeyToAccount(privateKey)
    const wallet = createWalletClient({ account, transport: http(deployment.rpcUrl) })
    const write = async (call: object) => {
      const hash = await wallet.writeContract({ ...call, chain: null, gas: 8_000_000n } as never)
      const { status } = await client.waitForTransactionReceipt({ hash })
      if (status !== 'success') throw new Error(`${hash} reverted`)
    }
    return { address: account.address, write } as unknown as Sender
  }
  const [admin, marketMaker] = [senderOf(accounts.admin), senderOf(accounts.marketMaker)]
  const issuer = { address: contracts.StockIssuer as Address, abi: stockIssuerAbi }
  const registry = { address: contracts.TokenRegistry as Address, abi: tokenRegistryAbi }
  const oracle = { address: contracts.PriceOracle as Address, abi: priceOracleAbi }
  const adapter = { address: contracts.SwapAdapter as Address, abi: uniswapV3SwapAdapterAbi }
  const price = parseUnits(usd, 8)

  const nonce = BigInt(await client.getTransactionCount({ address: issuer.address }))
  await chain.send(accounts.admin, { ...issuer, functionName: 'deploy', args: [name, symbol] })
  const token = getContractAddress({ from: issuer.address, nonce })
  const args = [accounts.marketMaker.address, parseUnits('1000000000', DECIMALS)] as const
  await chain.send(accounts.admin, { address: token, abi: scaledStockTokenAbi, functionName: 'mint', args })

  const uniswap = contracts as unknown as Uniswap
  const pool = { token, decimals: DECIMALS, usdc: contracts.USDC as Address, fee: FEE }
  await createPool(admin, uniswap, pool, price)
  await approveUniswap(marketMaker, uniswap, [token])
  await addLiquidity(marketMaker, uniswap, pool, { price, depthUsdc: DEPTH_USDC })

  await chain.administer({ ...registry, functionName: 'registerToken', args: [token] })
  const description = { kind: 1, session: 0, powers: 15, issuer: issuer.address }
  await chain.administer({ ...registry, functionName: 'describeToken', args: [token, description] })
  await chain.administer({ ...adapter, functionName: 'setPool', args: [token, FEE] })
  await rememberPrices(
    marketMaker,
    await client.readContract({ ...adapter, functionName: 'poolOf', args: [token] }),
    64,
  )
  const limits = { maxAge: 86_400, maxDeviationBps: 2_000, deviationWindow: 2 }
  await chain.administer({ ...oracle, functionName: 'setAssetConfig', args: [token, limits] })
  await chain.send(accounts.oracleUpdater, { ...oracle, functionName: 'setPrices', args: [[token], [price]] })
  await chain.administer({ address: vault, abi: mandateVaultAbi, functionName: 'enableToken', args: [token] })
  return token
}
