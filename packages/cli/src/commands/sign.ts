import { type Client, createClient, signingTypes } from '@agent-trading-service/client'
import { findSymbol } from '@agent-trading-service/protocol/find-symbol'
import { termsOf, titleOf } from '@agent-trading-service/protocol/message-terms'
import { OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import { type Command, Option } from 'commander'
import type { Hex } from 'viem'
import { Failure } from '../failure.ts'
import { homeFolder } from '../keys/key-folder.ts'
import { openSigner, type Signer } from '../keys/signer.ts'
import { askOnTerminal } from '../output/ask.ts'
import { printableJson } from '../output/clean.ts'
import { assertAskedFor, assertBodyMatches, assertDeadline } from '../trading/assert-signable.ts'
import { addressOf, type Reader } from '../trading/create-reader.ts'
import { createNonceFiles } from '../trading/nonce-files.ts'
import { assertNonePending, type Signatory } from '../trading/pending.ts'
import { pinsOf, pinToken, type ServicePins, symbolsOf, tokenOfSymbol } from '../trading/pins.ts'
import { assertAllowed, carryOut, describePlan, type Plan } from '../trading/plan.ts'
import { AGENT_TYPES, parseSignable, ROUTER_TYPES, type Signable } from '../trading/signable.ts'
import { createServiceCommand, keyOption, passwordFileOption, rpcOption, type SigningOptions } from './options.ts'
import { readJsonFromStdin } from './read-stdin.ts'

type SignOptions = SigningOptions & { type?: string; rpc?: string }

/** `ats sign`: signs the typed data of a quote and prints the body to post, for use with curl. */
export function signCommand(): Command {
  return createServiceCommand(
    'sign',
    'sign the quote of a trade from standard input and print the body to post',
    'curl -s "$ATS_URL/agents/1/trade-intents/quote?symbol=NVDA&usdcAmount=250" | ats sign',
    'curl -s "$ATS_URL/agents/1/stop/quote?action=reduceOnly" | ats sign --type StopBuying',
  )
    .addOption(keyOption())
    .addOption(passwordFileOption())
    .addOption(
      new Option('--type <message>', 'the message to sign, if it is not a trade').choices(
        Object.keys(signingTypes).filter(type => !(ROUTER_TYPES as readonly string[]).includes(type)),
      ),
    )
    .addOption(rpcOption('node whose clock bounds the deadline, instead of the clock of this machine'))
    .option('-y, --yes', 'do not ask before signing')
    .action(sign)
}

async function sign({ url, type, rpc, yes, ...options }: SignOptions): Promise<void> {
  const home = homeFolder()
  const quote = await readJsonFromStdin('a quote with typedData')
  const { typedData, body, code, error, digest } = quote
  if (typedData === undefined)
    throw new Failure('usage', `The input is not a quote with typedData${error ? `: ${error}` : '.'}`, {
      code: typeof code === 'string' ? code : 'INPUT_INVALID',
      remedy: 'Request the quote with every field, such as symbol and usdcAmount, so that it has typedData.',
    })
  const client = createClient({
    ...addressOf({ url, timeout: options.timeout }),
    nonceStore: createNonceFiles(home),
    ...(rpc !== undefined && { rpcUrl: rpc }),
  })
  const pins = await pinsOf(home, url, client)
  const signable = parseSignable(typedData, pins, url)
  if (digest !== undefined && digest !== signable.digest)
    throw new Failure('mismatch', `The quote has the digest ${digest}; its typed data has ${signable.digest}.`, {
      code: 'DIGEST_MISMATCH',
      remedy: 'Do not sign this: quote and typed data differ.',
    })
  assertAskedFor(signable, type)
  const { primaryType, message } = signable
  const { serverTime } = quote
  const judged = await client.judgeDeadline({ primaryType, deadline: `${message.deadline}`, serverTime })
  assertDeadline(signable, judged)
  assertBodyMatches(signable, body, await tokenOf(client, pins, body))
  const signer = openSigner(home, options, { preferred: typeof quote.signer === 'string' ? quote.signer : undefined })
  const symbol = await symbolOf(client, pins, signable)
  if (symbol && signable.message.token !== undefined) pinToken(home, url, symbol, `${signable.message.token}`)
  const signatory = signatoryOf(signable)
  const plan = {
    ...planOf(signable, symbol, signer),
    ...(judged.warning !== undefined && { warnings: [judged.warning] }),
    ...(signatory && { assertAlone: () => assertNonePending(home, url, signatory) }),
  }
  assertAllowed(home, plan)
  process.stderr.write(`${describePlan(plan)}\n`)
  if (!yes) await askOnTerminal('Sign?')
  await signer.unlock()
  // An owner's message says what shall be, so that a second one does nothing more: only an agent's take their nonce.
  if (AGENT_TYPES.includes(signable.primaryType))
    await client.takeNonce({ ...signable, secondsAhead: judged.secondsAhead })
  const signature = await carryOut(home, plan)
  process.stdout.write(`${printableJson({ ...(body as object), signature })}\n`)
}

/** Returns whose pending messages the message has to wait for. */
function signatoryOf({ primaryType, message }: Signable): Signatory | undefined {
  if (AGENT_TYPES.includes(primaryType)) return { agentId: `${message.agentId}` }
  return primaryType === 'SelfRegister' ? { signer: `${message.signer}` } : undefined
}

function planOf(signable: Signable, symbol: string | undefined, signer: Signer): Plan {
  const { message, digest, definition } = signable
  const usdc = isPurchase(signable) ? message.usdcAmount : undefined
  return {
    title: titleOf(signable),
    signer: signer.address,
    terms: termsOf(signable, { symbolOf: () => symbol }),
    checks: [],
    warnings: [],
    typedData: definition,
    digest,
    ...(usdc !== undefined && { spending: { usdc: BigInt(`${usdc}`), symbol } }),
    unlock: () => signer.unlock(),
    send: async () => (await signer.unlock()).signTypedData(definition),
  }
}

const isPurchase = ({ primaryType, message }: Signable) =>
  primaryType === 'OpenPosition' ||
  primaryType === 'AddToPosition' ||
  (primaryType === 'PlaceOrder' && message.side !== OrderSide.Reduce)

/** Returns the token of the symbol in a body: the pinned one, or for a new symbol the one that the service lists. */
async function tokenOf(reads: Reader, pins: ServicePins, body: unknown): Promise<Hex | undefined> {
  const { symbol } = (body ?? {}) as { symbol?: unknown }
  if (symbol === undefined) return undefined
  const pinned = tokenOfSymbol(pins, `${symbol}`)
  return pinned ?? (findSymbol((await reads.listTokens()).tokens, `${symbol}`)?.address as Hex | undefined)
}

/**
 * Returns the symbol that a purchase is about. A message that names only a position has one if a node says which token
 * that holds.
 */
async function symbolOf(client: Client, pins: ServicePins, signable: Signable): Promise<string | undefined> {
  if (!isPurchase(signable)) return undefined
  const { token = await client.tokenOfPosition(`${signable.message.positionId}`) } = signable.message
  if (token === undefined) return undefined
  const isToken = (address: string) => address.toLowerCase() === `${token}`.toLowerCase()
  for (const [symbol, address] of symbolsOf(pins)) if (isToken(address)) return symbol
  return (await client.listTokens()).tokens.find(({ address }) => isToken(address))?.symbol
}
