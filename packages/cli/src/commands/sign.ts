import type { Command } from 'commander'
import { Failure } from '../failure.ts'
import { homeFolder } from '../keys/key-folder.ts'
import { openSigner } from '../keys/signer.ts'
import { enforceLimits } from '../limits/enforce-limits.ts'
import { createReader, type Reader } from '../trading/create-reader.ts'
import { pinsOf } from '../trading/pins.ts'
import { parseSignable, type Signable } from '../trading/signable.ts'
import { createServiceCommand, keyOption, passwordFileOption, type SigningOptions } from './options.ts'
import { readJsonFromStdin } from './read-stdin.ts'

/** `ats sign`: signs the typed data of a quote and prints the body to post, for use with curl. */
export function signCommand(): Command {
  return createServiceCommand(
    'sign',
    'sign a quote from standard input and print the body to post',
    'curl -s "$ATS_URL/agents/1/trade-intents/quote?symbol=NVDA&usdcAmount=250" | ats sign',
  )
    .addOption(keyOption())
    .addOption(passwordFileOption())
    .action(sign)
}

async function sign({ url, ...options }: SigningOptions): Promise<void> {
  const home = homeFolder()
  const quote = await readJsonFromStdin('a quote with typedData')
  const { typedData, body, code, error, digest } = quote
  if (typedData === undefined)
    throw new Failure('usage', `The input is not a quote with typedData${error ? `: ${error}` : '.'}`, {
      code: typeof code === 'string' ? code : 'INPUT_INVALID',
      remedy: 'Request the quote with every field, such as symbol and usdcAmount, so that it has typedData.',
    })
  const reads = createReader({ url, timeout: options.timeout })
  const signable = parseSignable(typedData, await pinsOf(home, url, reads))
  if (digest !== undefined && digest !== signable.digest)
    throw new Failure('mismatch', `The quote has the digest ${digest}; its typed data has ${signable.digest}.`, {
      code: 'DIGEST_MISMATCH',
      remedy: 'Do not sign this: quote and typed data differ.',
    })
  const account = await openSigner(home, options).unlock()
  const usdc = purchaseOf(signable)
  if (usdc !== undefined) enforceLimits(home, { id: signable.digest, usdc, symbol: await symbolOf(reads, signable) })
  const signature = await account.signTypedData(signable.definition)
  process.stdout.write(`${JSON.stringify({ ...(body as object), signature })}\n`)
}

const purchaseOf = ({ primaryType, message }: Signable): bigint | undefined =>
  primaryType === 'OpenPosition' || primaryType === 'AddToPosition' ? BigInt(message.usdcAmount as string) : undefined

/** Returns the symbol that a purchase is about, from the token or the position in the message that is signed. */
async function symbolOf(reads: Reader, { message }: Signable): Promise<string | undefined> {
  const { token, agentId, positionId } = message
  if (token === undefined)
    return (await reads.getPosition({ agentId: `${agentId}`, positionId: `${positionId}` })).position.symbol
  const { tokens } = await reads.listTokens()
  return tokens.find(({ address }) => address.toLowerCase() === `${token}`.toLowerCase())?.symbol
}
