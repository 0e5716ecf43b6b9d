import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Hex } from 'viem'

let ours: Record<string, Hex> | undefined

// Read on first use: tests in workerd import the senders but cannot read these files.
const read = (file: string) => JSON.parse(readFileSync(join(import.meta.dirname, '../contracts', file), 'utf8'))

const uniswap: Record<string, string> = {
  UniswapV3Factory: '@uniswap/v3-core/artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory.json',
  NonfungiblePositionManager:
    '@uniswap/v3-periphery/artifacts/contracts/NonfungiblePositionManager.sol/NonfungiblePositionManager.json',
  SwapRouter: '@uniswap/v3-periphery/artifacts/contracts/SwapRouter.sol/SwapRouter.json',
  QuoterV2: '@uniswap/v3-periphery/artifacts/contracts/lens/QuoterV2.sol/QuoterV2.json',
}

/** Chainlink's, which contracts/tools/chainlink.mjs compiles. */
const chainlink = ['VerifierProxy', 'Verifier', 'ReportFeeManager', 'RewardManager', 'FluxAggregator']

/**
 * Returns a contract's creation bytecode: ours as scripts/generate-abis.ts commits it, Uniswap's as published on npm,
 * Chainlink's compiled from npm.
 */
export function bytecodeOf(name: string): Hex {
  if (chainlink.includes(name)) return read('chainlink.json')[name].bytecode
  ours ??= read('bytecode.json') as Record<string, Hex>
  const path = uniswap[name]
  const bytecode: Hex | undefined = path ? createRequire(import.meta.url)(path).bytecode : ours[name]
  if (!bytecode) throw new Error(`contracts/bytecode.json lacks ${name}: run \`npm run abis\`.`)
  return bytecode
}
