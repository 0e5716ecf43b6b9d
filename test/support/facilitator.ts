import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { x402Facilitator } from '@x402/core/facilitator'
import type { PaymentPayload, PaymentRequirements, SettleResponse } from '@x402/core/types'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator'
import { type Address, createWalletClient, http, type PublicClient, publicActions } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { ACCOUNTS, devnetAccounts } from '../../devnet/accounts.ts'
import { type Anvil, startAnvil } from '../../devnet/anvil.ts'
import type { Deployment } from '../../devnet/deployment.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { connect, pipelinedSender } from '../../devnet/sender.ts'

/**
 * What the facilitator does with a request: work, refuse it, respond with an error (`fail`) or not at all (`hang`). For
 * a settlement also: report it as pending without settling (`pend`), settle and then report pending, refuse or hang
 * (`…-settled`), settle a second after refusing (`refuse-late`), report an error and settle only after the next payment
 * (`err-late`), or settle and close the connection (`lose`).
 */
export type FacilitatorBehaviour =
  | 'work'
  | 'refuse'
  | 'fail'
  | 'hang'
  | 'pend'
  | 'pend-settled'
  | 'refuse-settled'
  | 'refuse-late'
  | 'err-late'
  | 'hang-settled'
  | 'lose'

/** Another chain than the deployment's, with its own USDC. */
export type FeeChain = { rpcUrl: string; chainId: number; usdc: Address }

type FacilitatorRequest = { paymentPayload: PaymentPayload; paymentRequirements: PaymentRequirements }

const FEE_CHAIN_ID = 84532
const PENDING_HASH = `0x${'ab'.repeat(32)}`

// Serves the x402 library's facilitator over HTTP. Tests change its behaviour with POST /control. It runs in its own
// process: the first argument is the deployment as JSON, and the parent process receives the port.
const { rpcUrl, chainId }: Deployment = JSON.parse(process.argv[2] ?? '')
const accounts = devnetAccounts()
// It settles with the last agent's account, which no test trades with.
const key = accounts.agents.at(-1)?.privateKey ?? accounts.admin.privateKey
const facilitator = new x402Facilitator()
const serve = (client: PublicClient, network: `eip155:${number}`) => {
  const wallet = createWalletClient({
    account: privateKeyToAccount(key),
    chain: client.chain,
    transport: retryLatest(http(client.transport.url)),
    pollingInterval: 50,
  }).extend(publicActions)
  const signer = toFacilitatorEvmSigner({ ...wallet, address: wallet.account.address } as never)
  registerExactEvmScheme(facilitator, { signer, networks: network })
}
serve(connect(rpcUrl, chainId), `eip155:${chainId}`)

let anvil: Anvil | undefined
async function startFeeChain(): Promise<FeeChain> {
  anvil ??= await startAnvil({ chainId: FEE_CHAIN_ID, accounts: ACCOUNTS })
  const client = connect(anvil.rpcUrl, FEE_CHAIN_ID)
  const admin = pipelinedSender(client, accounts.admin.address)
  const usdc = await admin.deploy({
    name: 'UsdcToken',
    abi: usdcTokenAbi,
    args: [admin.address, 'USD Coin', 'USDC', '2'],
  })
  const mint = { address: usdc, abi: usdcTokenAbi, functionName: 'mint' } as const
  await admin.write({ ...mint, args: [accounts.payer.address, 100_000_000n] })
  await admin.settle()
  serve(client, `eip155:${FEE_CHAIN_ID}`)
  return { rpcUrl: anvil.rpcUrl, chainId: FEE_CHAIN_ID, usdc }
}

let behaviour: Record<'verify' | 'settle', FacilitatorBehaviour> = { verify: 'work', settle: 'work' }
let calls = { verify: 0, settle: 0 }
let late: FacilitatorRequest[] = []
async function respond(request: IncomingMessage, response: ServerResponse) {
  const posted = JSON.parse((await textOf(request)) || '{}')
  const reply = (body: unknown, status = 200) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  if (request.url === '/control') {
    const received = calls
    behaviour = { verify: 'work', settle: 'work', ...posted }
    calls = { verify: 0, settle: 0 }
    return reply(received)
  }
  if (request.url === '/calls') return reply(calls)
  if (request.url === '/fee-network') return reply(await startFeeChain())
  if (request.url === '/supported') return reply(facilitator.getSupported())

  const step = request.url === '/verify' ? 'verify' : 'settle'
  const how = behaviour[step]
  calls[step]++
  const { paymentPayload: payload, paymentRequirements: requirements } = posted as FacilitatorRequest
  const failure = (errorReason: string, transaction = ''): SettleResponse => ({
    success: false,
    errorReason,
    transaction,
    network: requirements.network,
  })
  if (how === 'hang') return
  if (how === 'fail') return reply({ message: 'out of order' }, 500)
  if (step === 'verify')
    return reply(
      how === 'refuse'
        ? { isValid: false, invalidReason: 'blocked_payer' }
        : await facilitator.verify(payload, requirements),
    )
  if (how === 'refuse') return reply(failure('blocked_payer'))
  if (how === 'refuse-late') {
    void sleep(1_000).then(() => facilitator.settle(payload, requirements))
    return reply(failure('blocked_payer'))
  }
  if (how === 'err-late') {
    late.push(posted)
    return reply(failure('unexpected_settle_error'))
  }
  if (how === 'pend') return reply(failure('settlement_pending', PENDING_HASH))
  const settled = await facilitator.settle(payload, requirements)
  if (how === 'pend-settled') return reply(failure('settlement_pending', settled.transaction))
  if (how === 'refuse-settled') return reply(failure('blocked_payer'))
  if (how === 'lose') return response.destroy()
  if (how === 'hang-settled') return
  const unsettled = late
  late = []
  for (const { paymentPayload, paymentRequirements } of unsettled)
    await facilitator.settle(paymentPayload, paymentRequirements)
  return reply(settled)
}

const server = createServer((request, response) => {
  respond(request, response).catch(error => response.writeHead(500).end(`${error}`))
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.once('disconnect', async () => {
  server.closeAllConnections()
  server.close()
  await anvil?.stop()
  process.exit()
})

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}
