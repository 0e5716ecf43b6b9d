import { gasLimitOf } from '@agent-trading-service/protocol/gas-limit'
import {
  type Abi,
  type Address,
  BaseError,
  type ContractConstructorArgs,
  type ContractFunctionArgs,
  type ContractFunctionName,
  concat,
  createPublicClient,
  createWalletClient,
  custom,
  decodeErrorResult,
  defineChain,
  type EncodeDeployDataParameters,
  type EncodeFunctionDataParameters,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  http,
  keccak256,
  numberToHex,
  type PublicClient,
  RawContractError,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { bytecodeOf } from './bytecode.ts'
import { retryLatest } from './retry-latest.ts'

export const MULTICALL3 = '0xcA11bde05977b3631167028862bE2a173976CA11'

/** A contract by its name for `bytecodeOf`, with its constructor arguments. */
export type Creation<abi extends Abi> = {
  name: string
  abi: abi
  args: ContractConstructorArgs<abi>
  /** Other creation bytecode than that of `bytecodeOf`. */
  bytecode?: Hex
}
type Mutability = 'nonpayable' | 'payable'
export type Write<abi extends Abi, name extends ContractFunctionName<abi, Mutability>> = {
  address: Address
  abi: abi
  functionName: name
  args: ContractFunctionArgs<abi, Mutability, name>
}

/** Sends one account's transactions in order. */
export type Sender = {
  address: Address
  /** Deploys a contract and returns its address, which may have no code before `settle` resolves. */
  deploy<const abi extends Abi>(creation: Creation<abi>): Promise<Address>
  write<const abi extends Abi, name extends ContractFunctionName<abi, Mutability>>(
    call: Write<abi, name>,
  ): Promise<void>
  /** Resolves when every transaction is mined; throws with the name of the first step that failed. */
  settle(): Promise<void>
}

type Step = { label: string; abi: Abi; to?: Address; data: Hex }

/** Returns a client of one RPC URL that batches concurrent requests into one HTTP request. */
export function connect(rpcUrl: string, chainId: number): PublicClient {
  return createPublicClient({
    chain: defineChain({
      id: chainId,
      name: `chain ${chainId}`,
      nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
      rpcUrls: { default: { http: [rpcUrl] } },
      contracts: { multicall3: { address: MULTICALL3 } },
    }),
    transport: retryLatest(http(rpcUrl, { batch: { batchSize: 200 } })),
    pollingInterval: 100,
    cacheTime: 0,
  })
}

/** The mined steps of a run, so that an interrupted run can resume. */
export type Journal = {
  done: ReadonlyMap<Hex, Address | null>
  add(step: Hex, contract: Address | null): void
}

// A line of the log shows which step was sent; `--verify` reads the values back.
const MAX_LABEL_LENGTH = 200

/**
 * Returns a sender for a public chain. It estimates each transaction and waits for it before the next one, so that no
 * step follows a failed one. It skips steps that are in the journal.
 */
export function stepwiseSender(
  client: PublicClient,
  privateKey: Hex,
  { journal, log }: { journal: Journal; log: (line: string) => void },
): Sender {
  const account = privateKeyToAccount(privateKey)
  const wallet = createWalletClient({ account, chain: client.chain, transport: custom(client) })
  const names = new Map<string, string>()
  const readable = (label: string) => {
    const named = label.replace(/0x[0-9a-fA-F]{40}\b/g, address => names.get(address.toLowerCase()) ?? address)
    return named.length > MAX_LABEL_LENGTH ? `${named.slice(0, MAX_LABEL_LENGTH)}…` : named
  }
  let index = 0
  const run = async (step: Step): Promise<Address | null> => {
    const id = keccak256(concat([numberToHex(index++, { size: 4 }), step.to ?? '0x', step.data]))
    const known = journal.done.get(id)
    if (known !== undefined) return known
    const { data } = step
    const to = step.to ?? null
    const hash = await client
      .estimateGas({ account, to, data })
      .then(gas => wallet.sendTransaction({ chain: client.chain ?? null, to, data, gas: gasLimitOf(gas) }))
      .catch(cause => {
        throw new Error(`${step.label} was rejected: ${reasonOf(cause, step.abi)}`)
      })
    const { status, contractAddress } = await client.waitForTransactionReceipt({ hash, timeout: 180_000 })
    if (status !== 'success') throw new Error(`${step.label} reverted in ${hash}`)
    journal.add(id, contractAddress ?? null)
    log(`${readable(step.label)}${contractAddress ? ` -> ${contractAddress}` : ''}`)
    return contractAddress ?? null
  }
  return {
    address: account.address,
    async deploy(creation) {
      const address = await run(creationStep(creation))
      if (!address) throw new Error(`The receipt of ${creation.name} has no contract address.`)
      names.set(address.toLowerCase(), creation.name)
      return address
    },
    async write(call) {
      await run(writeStep(call))
    },
    settle: async () => {},
  }
}

// Fixed, because estimating would cost a round trip per step: enough for every step, far below the block gas limit.
const GAS = 12_000_000n
const MAX_FEE_PER_GAS = 100_000_000_000n
/** How many blocks a batch of transactions may need. */
const MAX_BLOCKS = 100

/**
 * Returns a sender for a fresh embedded chain and one of its own accounts, with nonce 0. The node signs, nonces are
 * counted and gas is fixed here, and `settle` sends everything in one HTTP request and then mines, so that a whole
 * deployment fits into a few blocks. Meanwhile the chain should not mine by itself: anvil forgets transactions that
 * arrive while it mines the ones before them.
 */
export function pipelinedSender(client: PublicClient, address: Address): Sender {
  let next = 0
  let queue: { step: Step; nonce: number }[] = []
  const enqueue = (step: Step) => {
    queue.push({ step, nonce: next })
    return next++
  }
  return {
    address,
    async deploy(creation) {
      return getContractAddress({ from: address, nonce: BigInt(enqueue(creationStep(creation))) })
    },
    async write(call) {
      enqueue(writeStep(call))
    },
    async settle() {
      const sent = queue
      queue = []
      const hashes = await Promise.all(sent.map(({ step, nonce }) => sendUnsigned(client, address, nonce, step)))
      const last = hashes.at(-1)
      if (!last) return
      for (let blocks = 0; !(await isMined(client, last)); blocks++) {
        if (blocks === MAX_BLOCKS) throw new Error(`${blocks} blocks do not contain ${last}.`)
        await client.request<{ Method: 'evm_mine'; Parameters: []; ReturnType: string }>({
          method: 'evm_mine',
          params: [],
        })
      }
      const receipts = await Promise.all(hashes.map(hash => client.getTransactionReceipt({ hash })))
      for (const [index, receipt] of receipts.entries()) {
        const step = sent[index]?.step
        if (step && receipt.status !== 'success') throw new Error(await explain(client, address, step))
      }
    },
  }
}

function creationStep<abi extends Abi>({ name, abi, args, bytecode }: Creation<abi>): Step {
  const data = encodeDeployData({ abi, bytecode: bytecode ?? bytecodeOf(name), args } as EncodeDeployDataParameters)
  return { label: `deploy ${name}`, abi, data }
}

function writeStep<abi extends Abi, name extends ContractFunctionName<abi, Mutability>>(call: Write<abi, name>): Step {
  const data = encodeFunctionData(call as EncodeFunctionDataParameters)
  const label = `${call.address}.${call.functionName}(${describe(call.args)})`
  return { label, abi: call.abi, to: call.address, data }
}

function sendUnsigned(client: PublicClient, from: Address, nonce: number, { to, data }: Step): Promise<Hex> {
  return client.request<{ Method: 'eth_sendTransaction'; Parameters: [Record<string, string>]; ReturnType: Hex }>({
    method: 'eth_sendTransaction',
    params: [
      {
        from,
        ...(to && { to }),
        data,
        nonce: numberToHex(nonce),
        gas: numberToHex(GAS),
        maxFeePerGas: numberToHex(MAX_FEE_PER_GAS),
        maxPriorityFeePerGas: '0x0',
      },
    ],
  })
}

async function explain(client: PublicClient, account: Address, { label, abi, to, data }: Step) {
  const reason = await client.call({ account, data, ...(to && { to }), gas: GAS }).then(
    () => 'the same call succeeds on the resulting state',
    error => reasonOf(error, abi),
  )
  return `${label} reverted: ${reason}`
}

function reasonOf(error: unknown, abi: Abi): string {
  const raw = error instanceof BaseError ? error.walk(cause => cause instanceof RawContractError) : undefined
  const data = raw instanceof RawContractError ? raw.data : undefined
  const hex = typeof data === 'object' ? data.data : data
  if (hex) {
    try {
      const { errorName, args } = decodeErrorResult({ abi, data: hex })
      return `${errorName}(${describe(args ?? [])})`
    } catch {
      return hex
    }
  }
  return error instanceof BaseError ? error.shortMessage : String(error)
}

const isMined = (client: PublicClient, hash: Hex) =>
  client.getTransactionReceipt({ hash }).then(
    () => true,
    () => false,
  )

const describe = (args: unknown) =>
  JSON.stringify(args, (_, value) => (typeof value === 'bigint' ? `${value}` : value)).slice(1, -1)
