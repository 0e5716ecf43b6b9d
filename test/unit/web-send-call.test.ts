import { encodeErrorResult, parseAbi } from 'viem'
import { expect, it } from 'vitest'
import { Stopped } from '../../web/src/wallet/provider.ts'
import { outcomeOf, sendCall } from '../../web/src/wallet/vault-calls.ts'

const CHAIN = 4663
const OWNER = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const VAULT = '0x00000000000000000000000000000000000000bb'
const CALL = { to: VAULT, functionName: 'deposit', args: [5n, OWNER] } as const
const hashOf = (digit: string): `0x${string}` => `0x${digit.repeat(64)}`
const [SENT, OTHER] = [hashOf('1'), hashOf('2')]

type Transaction = { hash: string; from: string; to: string; input: string; value: string; nonce: string }

/** A wallet on a chain of 40 blocks. The account has sent one transaction in block 3. */
function createWallet() {
  const earlier = { hash: hashOf('e'), from: OWNER.toLowerCase(), to: VAULT, input: '0x', value: '0x0', nonce: '0x0' }
  const wallet = {
    chainId: CHAIN,
    account: OWNER.toLowerCase(),
    answered: Promise.resolve(),
    blocks: Array.from({ length: 40 }, (_, block): Transaction[] => (block === 3 ? [earlier] : [])),
    pending: [] as Transaction[],
    failing: new Set<string>(),
    sent: [] as Record<string, string>[],
    reverted: new Set<string>(),
    onCall: () => {},
    mine(transaction: Transaction) {
      wallet.pending = wallet.pending.filter(({ nonce }) => nonce !== transaction.nonce)
      wallet.blocks.push([transaction], [], [])
    },
  }
  const answers: Record<string, (...params: never[]) => unknown> = {
    eth_chainId: () => `0x${wallet.chainId.toString(16)}`,
    eth_accounts: () => [wallet.account],
    eth_call: () => wallet.onCall(),
    eth_sendTransaction: async (call: Record<string, string>) => {
      await wallet.answered
      wallet.sent.push(call)
      const { to = '', data = '' } = call
      wallet.pending.push({ hash: SENT, from: OWNER.toLowerCase(), to, input: data, value: '0x0', nonce: '0x1' })
      return SENT
    },
    eth_blockNumber: () => wallet.blocks.length - 1,
    eth_getTransactionCount: (_: string, block: string) => wallet.blocks.slice(0, Number(block) + 1).flat().length,
    eth_getTransactionByHash: (hash: string) =>
      [...wallet.pending, ...wallet.blocks.flat()].find(known => known.hash === hash) ?? null,
    eth_getTransactionReceipt: (hash: string) =>
      wallet.blocks.flat().some(known => known.hash === hash)
        ? { status: wallet.reverted.has(hash) ? '0x0' : '0x1' }
        : null,
    eth_getBlockByNumber: (block: string) => ({ transactions: wallet.blocks[Number(block)] }),
  }
  const provider = {
    async request({ method, params = [] }: { method: string; params?: readonly unknown[] }) {
      if (wallet.failing.has(method)) throw new Error(`${method} fails`)
      return answers[method]?.(...(params as never[]))
    },
  }
  /** Sends a deposit. Runs the steps one after another, each after a look that found the transaction open. */
  function deposit(...steps: ((pending: Transaction) => void)[]) {
    const notes: (string | undefined)[] = []
    const onOpen = (why: string | undefined) => {
      notes.push(why)
      steps.shift()?.(wallet.pending[0] as Transaction)
    }
    const sent = { address: OWNER, chainId: CHAIN }
    const outcome = sendCall(current, CALL).then(hash => outcomeOf(provider, { ...sent, hash }, onOpen, 0))
    return { outcome, notes }
  }
  const current = { wallet: { id: '1', rdns: 'test', name: 'Test', provider }, address: OWNER, chainId: CHAIN } as const
  return { wallet, current, deposit }
}

it('sends nothing while the wallet is on another chain, also if it was switched during the trial', async () => {
  const { wallet, deposit } = createWallet()
  wallet.chainId = 1
  await expect(deposit().outcome).rejects.toThrow(
    'The wallet is on chain 1, not on chain 4663 of this service; this transaction was not sent.',
  )
  wallet.chainId = CHAIN
  wallet.onCall = () => {
    wallet.chainId = 10
  }
  await expect(deposit().outcome).rejects.toThrow('on chain 10')
  expect(wallet.sent).toEqual([])
})

it('sends nothing for an account that the wallet has left, also during the trial', async () => {
  const { wallet, deposit } = createWallet()
  wallet.account = VAULT
  await expect(deposit().outcome).rejects.toThrow(
    `The wallet is on account ${VAULT}, not on ${OWNER}; this transaction was not sent.`,
  )
  wallet.account = OWNER
  wallet.onCall = () => {
    wallet.account = VAULT
  }
  await expect(deposit().outcome).rejects.toThrow(`on account ${VAULT}`)
  expect(wallet.sent).toEqual([])
})

it('stops waiting for a wallet that does not answer, and reports what it sends later', async () => {
  const { wallet, current } = createWallet()
  const answered = Promise.withResolvers<void>()
  const late = Promise.withResolvers<string | undefined>()
  wallet.answered = answered.promise
  const stop = new AbortController()
  wallet.onCall = () => setTimeout(() => stop.abort(new Stopped()))
  await expect(sendCall(current, CALL, { signal: stop.signal, onLate: late.resolve })).rejects.toThrow(Stopped)
  answered.resolve()
  expect(await late.promise).toBe(SENT)
})

it('names the chain in the transaction and waits through reads that fail', async () => {
  const { wallet, deposit } = createWallet()
  const { outcome, notes } = deposit(
    () => wallet.failing.add('eth_getTransactionReceipt'),
    () => wallet.failing.clear(),
    pending => wallet.mine(pending),
  )
  expect(await outcome).toBe(SENT)
  expect(notes).toEqual([undefined, 'the wallet could not read it', undefined])
  expect(wallet.sent).toMatchObject([{ chainId: '0x1237', to: VAULT }])
})

it('says that the outcome is unknown while the wallet is on another chain or does not list the transaction', async () => {
  const { wallet, deposit } = createWallet()
  let lost: Transaction[] = []
  const { outcome, notes } = deposit(
    () => {
      wallet.chainId = 1
    },
    () => {
      wallet.chainId = CHAIN
      lost = wallet.pending.splice(0)
    },
    () => wallet.mine(lost[0] as Transaction),
  )
  expect(await outcome).toBe(SENT)
  expect(notes).toEqual([
    undefined,
    'the wallet is on chain 1; switch it back to chain 4663',
    'the node of the wallet does not list it any more',
  ])
})

it('follows a transaction that was sped up', async () => {
  const { wallet, deposit } = createWallet()
  expect(await deposit(pending => wallet.mine({ ...pending, hash: OTHER })).outcome).toBe(OTHER)
})

it('does not take a cancelled or reverted transaction for an executed one', async () => {
  const cancelled = createWallet()
  await expect(
    cancelled.deposit(pending => cancelled.wallet.mine({ ...pending, hash: OTHER, to: OWNER, input: '0x' })).outcome,
  ).rejects.toThrow(`The wallet replaced transaction ${SENT} with another one, ${OTHER}; nothing was moved.`)
  const reverted = createWallet()
  reverted.wallet.reverted.add(SENT)
  await expect(reverted.deposit(pending => reverted.wallet.mine(pending)).outcome).rejects.toThrow('reverted')
})

it('does not call a transaction unsent after an error that the wallet may raise after sending', async () => {
  const { wallet, deposit } = createWallet()
  wallet.failing.add('eth_sendTransaction')
  await expect(deposit().outcome).rejects.toThrow('Look in the wallet whether it was sent before you try again.')
})

it.each([
  [
    'USDC',
    encodeErrorResult({ abi: parseAbi(['error Error(string)']), args: ['Blacklistable: account is blacklisted'] }),
  ],
  ['USDG', encodeErrorResult({ abi: parseAbi(['error AddressFrozen()']) })],
])('sends nothing if the issuer of the dollar blocks an account, and says so: %s', async (_, data) => {
  const { wallet, deposit } = createWallet()
  wallet.onCall = () => {
    throw Object.assign(new Error('execution reverted'), { data })
  }
  await expect(deposit().outcome).rejects.toThrow('its issuer blocked your account or the vault')
  expect(wallet.sent).toEqual([])
})
