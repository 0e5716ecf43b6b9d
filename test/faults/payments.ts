import { setTimeout as sleep } from 'node:timers/promises'
import { type Address, numberToHex, pad, parseAbiItem } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import type { Devnet } from '../../devnet/index.ts'
import { createPayer } from '../../packages/client/src/pay.ts'
import { FAITHLESS_CODE } from '../support/faithless-code.ts'
import { randomOf } from '../support/seeded-random.ts'
import type { Charges } from './violations.ts'

/** A payment in a header. `send` posts it with a body; a turning payer then rejects its own signature after a while. */
export type Payment = { header: string; turn: () => Promise<void> }

/** The payments of a seed's registrations. */
export type Payments = {
  /** Returns the payments that an agent tries, one for each registration it signs. */
  of(agent: number): Promise<Payment[]>
  /** Returns what the chain says about all payments. */
  charges(): Promise<Charges>
}

const FEE = 1_000_000n
const VALID_SECONDS = 3_600
const TURNING_SHARE = 0.25
const MAX_TURN_MS = 1_200
const transfer = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)')

/** Opens the payments of a seed: honest ones by the chain's payer, and ones by contracts that turn. */
export async function openPayments(
  { client, deployment, send }: Devnet,
  { seed, agents }: { seed: number; agents: number },
): Promise<Payments> {
  const { chainId, contracts, accounts } = deployment
  const network = `eip155:${chainId}` as const
  const [asset, payTo] = [contracts.USDC, accounts.treasury.address]
  const requirements = {
    ...{ scheme: 'exact', network, asset, payTo, amount: `${FEE}` },
    ...{ maxTimeoutSeconds: VALID_SECONDS, extra: { name: 'USD Coin', version: '2' } },
  }
  const rpc = (method: string, ...params: unknown[]) => client.request({ method, params } as never)
  const account = privateKeyToAccount(accounts.payer.privateKey)
  const honest = createPayer({ account, chainId, asset, payTo, maxAmount: FEE, maxValiditySeconds: VALID_SECONDS })
  const turning = new Map<number, { address: Address; ms: number }>()
  const fromBlock = (await client.getBlockNumber()) + 1n
  for (let agent = 0; agent < agents; agent++) {
    const random = randomOf('payer', seed, agent)
    if (!random.chance(TURNING_SHARE)) continue
    const address = pad(numberToHex(random.integer(2 ** 20, 0xfffffffe)), { size: 20 })
    turning.set(agent, { address, ms: random.integer(0, MAX_TURN_MS) })
    await rpc('anvil_setCode', address, FAITHLESS_CODE)
    await send(accounts.admin, { address: asset, abi: usdcTokenAbi, functionName: 'mint', args: [address, FEE] })
  }

  async function honestPayment(): Promise<Payment> {
    const required = { x402Version: 2, resource: { url: '' }, accepts: [requirements] }
    const headers = await honest.pay(required)
    return { header: headers['PAYMENT-SIGNATURE'] ?? '', turn: async () => {} }
  }

  function turningPayment({ address, ms }: { address: Address; ms: number }): Payment {
    const validBefore = `${Math.floor(Date.now() / 1000) + VALID_SECONDS}`
    const authorization = {
      from: address,
      to: payTo,
      value: `${FEE}`,
      validAfter: '0',
      validBefore,
      nonce: pad(address),
    }
    const payload = { signature: `0x${'11'.repeat(66)}`, authorization }
    return {
      header: btoa(JSON.stringify({ x402Version: 2, accepted: requirements, payload })),
      async turn() {
        await sleep(ms)
        await rpc('anvil_setStorageAt', address, pad('0x0'), pad('0x1'))
      },
    }
  }

  /** Returns how often each turning payer's settlement reverted. */
  async function revertsByPayer(): Promise<number[]> {
    const head = await client.getBlockNumber()
    const reverts = new Map<Address, number>()
    for (let blockNumber = fromBlock; blockNumber <= head; blockNumber++) {
      const { transactions } = await client.getBlock({ blockNumber, includeTransactions: true })
      for (const { hash, to, input } of transactions) {
        if (to?.toLowerCase() !== asset.toLowerCase()) continue
        const payer = [...turning.values()].find(({ address }) => input.includes(address.slice(2)))?.address
        if (payer === undefined) continue
        const { status } = await client.getTransactionReceipt({ hash })
        if (status === 'reverted') reverts.set(payer, (reverts.get(payer) ?? 0) + 1)
      }
    }
    return [...reverts.values()]
  }

  return {
    async of(agent) {
      const payer = turning.get(agent)
      return payer ? [turningPayment(payer), await honestPayment()] : [await honestPayment()]
    },
    async charges() {
      const fees = await client.getLogs({ address: asset, event: transfer, args: { to: payTo }, fromBlock })
      return { paid: fees.length, revertsByPayer: await revertsByPayer() }
    },
  }
}
