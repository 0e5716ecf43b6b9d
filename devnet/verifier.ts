import { type Address, type Hex, numberToHex, zeroAddress } from 'viem'
import { verifierAbi } from '../contracts-abi/verifier.ts'
import { verifierProxyAbi } from '../contracts-abi/verifier-proxy.ts'
import { reportConfig } from './report-signers.ts'
import type { Sender } from './sender.ts'
import type { PriceSource } from './suite-config.ts'

/** Deploys Chainlink's verifier of signed reports with the embedded chain's signers, and returns its proxy. */
export async function deployVerifier(sender: Sender): Promise<Address> {
  const proxy = await sender.deploy({ name: 'VerifierProxy', abi: verifierProxyAbi, args: [zeroAddress] })
  const verifier = await sender.deploy({ name: 'Verifier', abi: verifierAbi, args: [proxy] })
  await sender.write({
    address: proxy,
    abi: verifierProxyAbi,
    functionName: 'initializeVerifier',
    args: [verifier],
  })
  const { digest, faults, signers } = reportConfig
  await sender.write({
    address: verifier,
    abi: verifierAbi,
    functionName: 'setConfig',
    args: [digest, signers, faults, []],
  })
  return proxy
}

const SESSIONS = 3

/**
 * Returns the source of a token of the embedded chain whose price is reported: the streams of 24/5 of a stock, one
 * stream of a plain token. The streams' numbers follow the token's place in the list, from 0.
 */
export function reportedSource(index: number, isSharePrice: boolean): PriceSource {
  const ids = Array.from({ length: isSharePrice ? SESSIONS : 1 }, (_, session) =>
    streamId(index * SESSIONS + session + 1),
  )
  return { kind: 'reports', feedIds: ids, maxSpreadBps: MAX_SPREAD_BPS, isSharePrice }
}

const MAX_SPREAD_BPS = 100
const SCHEMA = 11n

const streamId = (number: number): Hex => numberToHex((SCHEMA << 240n) | BigInt(number), { size: 32 })
