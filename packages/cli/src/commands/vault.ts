import type { Command } from 'commander'
import { type Address, formatUnits, parseAbi, parseUnits, zeroAddress } from 'viem'
import { Failure } from '../failure.ts'
import { createPrinter } from '../output/printer.ts'
import { type ChainCall, openChainAccount } from '../trading/chain-account.ts'
import { createReader } from '../trading/create-reader.ts'
import {
  createServiceCommand,
  digits,
  keyOption,
  passwordFileOption,
  rpcOption,
  type ServiceOptions,
  type SigningOptions,
  usdcAmount,
} from './options.ts'
import { readAndPrint } from './reads.ts'

type DepositorOptions = SigningOptions & { rpc: string; queue?: boolean }
type Kind = 'deposit' | 'redeem'

const USDC_DECIMALS = 6
const SHARE_DECIMALS = 12
/** How far the two prices of a vault may differ before a person should know, in percent. */
const NOTABLE_SPREAD_PERCENT = 1

const abi = parseAbi([
  'function vaultTrackRegistry() view returns (address)',
  'function isRegisteredVault(address vault) view returns (bool)',
  'function asset() view returns (address)',
  'function requestQueue() view returns (address)',
  'function balanceOf(address owner) view returns (uint256)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function maxDeposit(address receiver) view returns (uint256)',
  'function maxRedeem(address owner) view returns (uint256)',
  'function lockedShares(address owner) view returns (uint256)',
  'function totalAssetsRange() view returns (uint256 low, uint256 high)',
  'function approve(address spender, uint256 amount) returns (bool)',
  'function deposit(uint256 assets, address receiver) returns (uint256)',
  'function redeem(uint256 shares, address receiver, address owner) returns (uint256)',
  'function requestDeposit(uint256 assets, address controller, address owner) returns (uint256)',
  'function requestRedeem(uint256 shares, address controller, address owner) returns (uint256)',
  'function cancelDepositRequest(uint256 requestId, address controller)',
  'function cancelRedeemRequest(uint256 requestId, address controller)',
  'error RequestTooSmall(uint256 assets, uint256 minimum)',
  'error RequestNotPending(uint256 requestId)',
  'error SharesLocked(address owner, uint256 available, uint256 shares)',
  'error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)',
  'error LiquidityPaused()',
  'error SharePriceJumped(uint256 anchor, uint256 sharePrice, uint256 maxMoveBps)',
])

/** `ats vault`: a vault, and what a depositor does on chain, because the service has no operation for it. */
export function vaultCommand(): Command {
  const group = createServiceCommand('vault', 'show a vault, deposit into it, redeem its shares', 'ats vault genesis')
    // Its commands have options of the same names.
    .enablePositionalOptions()
    .argument('<vault>', 'slug or address')
    .option('--wide', 'show every column')
    .action((id: string, options: ServiceOptions) => readAndPrint('getVault', options, { id }))
  const signing = (...args: Parameters<typeof createServiceCommand>) =>
    createServiceCommand(...args)
      .addOption(keyOption())
      .addOption(passwordFileOption())
      .addOption(rpcOption('node to send the transactions to').makeOptionMandatory())
      .option('-y, --yes', 'do not ask before sending')
  const queued = 'leave a request that settles at the next price, as while markets are shut'
  group.addCommand(
    signing('deposit', 'give USDC for shares', 'ats vault deposit genesis 250 --queue --rpc http://127.0.0.1:8545')
      .argument('<vault>', 'slug or address')
      .argument('<usdc>', 'amount of USDC', usdcAmount)
      .option('--queue', queued)
      .action((vault: string, usdc: string, options: DepositorOptions) => move('deposit', vault, usdc, options)),
  )
  group.addCommand(
    signing('redeem', 'give shares for USDC', 'ats vault redeem genesis all --rpc http://127.0.0.1:8545')
      .argument('<vault>', 'slug or address')
      .argument('<shares>', 'whole shares such as 10.5, or all that are not locked')
      .option('--queue', queued)
      .action((vault: string, shares: string, options: DepositorOptions) => move('redeem', vault, shares, options)),
  )
  group.addCommand(
    signing('cancel', 'take a request back', 'ats vault cancel genesis deposit 3 --rpc http://127.0.0.1:8545')
      .argument('<vault>', 'slug or address')
      .argument('<kind>', 'deposit or redeem')
      .argument('<id>', 'id of the request', digits)
      .action(cancel),
  )
  group.addCommand(
    createServiceCommand('requests', 'list what waits for the next price', 'ats vault requests genesis')
      .argument('<vault>', 'slug or address')
      .action((id: string, options: ServiceOptions) => readAndPrint('listVaultRequests', options, { id })),
  )
  return group
}

/** Deposits or redeems, at once or by a request. The contracts are those that the pinned registry leads to. */
async function move(kind: Kind, id: string, amountText: string, options: DepositorOptions): Promise<void> {
  const opened = await openVault(id, options)
  const { client, address: owner, vault, send } = opened
  const prices = options.queue ? undefined : opened.pricesOf(vault)
  const printer = createPrinter(options.output)
  const target = options.queue ? await queueOf(opened) : vault
  const read = { address: vault, abi } as const
  const isDeposit = kind === 'deposit'
  const amount = isDeposit ? parseUnits(amountText, USDC_DECIMALS) : await sharesOf(opened, amountText)
  const text = isDeposit ? `${amountText} USDC` : `${formatUnits(amount, SHARE_DECIMALS)} shares`
  if (prices) {
    const functionName = isDeposit ? 'maxDeposit' : 'maxRedeem'
    const max = await opened.readAt({ ...read, functionName, args: [owner] }, prices)
    if (amount > max)
      throw new Failure('refused', `The vault takes at most ${max} base units now; ${amount} were asked for.`, {
        code: 'VAULT_LIMIT',
        remedy: 'Pass a smaller amount, or --queue to leave a request that settles at the next price.',
      })
    const [low, high] = await opened.readAt({ ...read, functionName: 'totalAssetsRange' }, prices)
    const spread = high === 0n ? 0 : Number(((high - low) * 10_000n) / high) / 100
    if (spread >= NOTABLE_SPREAD_PERCENT)
      printer.note(
        `The vault's assets are worth between ${low} and ${high} USDC base units: now, this costs up to ${spread} %. --queue waits for the next price.`,
      )
  }
  const token = isDeposit ? await client.readContract({ ...read, functionName: 'asset' }) : vault
  const calls: ChainCall[] = []
  if (isDeposit || options.queue) {
    const allowance = { address: token, abi, functionName: 'allowance', args: [owner, target] } as const
    if ((await client.readContract(allowance)) < amount)
      calls.push({ does: `Approve ${text}`, address: token, abi, functionName: 'approve', args: [target, amount] })
  }
  const own = isDeposit && !options.queue ? [owner] : [owner, owner]
  const functionName = options.queue ? (isDeposit ? 'requestDeposit' : 'requestRedeem') : kind
  const does = `${options.queue ? 'Request to ' : ''}${options.queue ? kind : isDeposit ? 'Deposit' : 'Redeem'} ${text}`
  calls.push({ does, address: target, abi, functionName, args: [amount, ...own], prices })
  const transactionHash = await send(printer, calls)
  printer.result({ vault: id, does, transactionHash })
}

async function cancel(id: string, kind: string, requestId: string, options: DepositorOptions): Promise<void> {
  if (kind !== 'deposit' && kind !== 'redeem')
    throw new Failure('usage', `"${kind}" is no kind of request.`, {
      code: 'INVALID_KIND',
      remedy: 'Pass deposit or redeem.',
    })
  const opened = await openVault(id, options)
  const printer = createPrinter(options.output)
  const functionName = kind === 'deposit' ? 'cancelDepositRequest' : 'cancelRedeemRequest'
  const does = `Cancel ${kind} request ${requestId}`
  const args = [BigInt(requestId), opened.address] as const
  const transactionHash = await opened.send(printer, [
    { does, address: await queueOf(opened), abi, functionName, args },
  ])
  printer.result({ vault: id, does, transactionHash })
}

type OpenedVault = Awaited<ReturnType<typeof openVault>>

/** The service only resolves the slug: the registry of the first contact says whether the address is a vault. */
async function openVault(id: string, options: DepositorOptions) {
  const reads = createReader(options)
  const account = await openChainAccount(options, reads)
  const vault = (await reads.getVault({ id })).vault.contractAddress as Address
  const { client, agentRegistry } = account
  const registry = await client.readContract({ address: agentRegistry, abi, functionName: 'vaultTrackRegistry' })
  if (!(await client.readContract({ address: registry, abi, functionName: 'isRegisteredVault', args: [vault] })))
    throw new Failure('mismatch', `${vault} is no registered vault. Nothing was sent.`, {
      code: 'VAULT_MISMATCH',
      remedy: 'Do not trust this service: it names a vault that the contracts of the first contact do not know.',
    })
  return { ...account, vault, id }
}

async function queueOf({ client, vault, id }: OpenedVault): Promise<Address> {
  const queue = await client
    .readContract({ address: vault, abi, functionName: 'requestQueue' })
    .catch(() => zeroAddress as Address)
  if (queue !== zeroAddress) return queue
  throw new Failure('refused', `The vault ${id} takes no requests.`, {
    code: 'NO_REQUEST_QUEUE',
    remedy: 'Deposit and redeem at once, without --queue.',
  })
}

async function sharesOf({ client, vault, address }: OpenedVault, text: string): Promise<bigint> {
  if (/^\d{1,15}(\.\d{1,12})?$/.test(text) && Number(text) > 0) return parseUnits(text, SHARE_DECIMALS)
  if (text !== 'all')
    throw new Failure('usage', `"${text}" is no number of shares.`, {
      code: 'INVALID_SHARES',
      remedy: 'Pass a number of whole shares with at most twelve decimals, or all.',
    })
  const [balance, locked] = await Promise.all([
    client.readContract({ address: vault, abi, functionName: 'balanceOf', args: [address] }),
    client.readContract({ address: vault, abi, functionName: 'lockedShares', args: [address] }),
  ])
  return balance - locked
}
