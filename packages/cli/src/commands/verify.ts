import type { Command } from 'commander'
import { type Address, isAddress, isHex, recoverTypedDataAddress } from 'viem'
import { Failure } from '../failure.ts'
import { homeFolder } from '../keys/key-folder.ts'
import { createPrinter } from '../output/printer.ts'
import { createReader } from '../trading/create-reader.ts'
import { pinsOf } from '../trading/pins.ts'
import { parseSignable } from '../trading/signable.ts'
import { createServiceCommand, type ServiceOptions } from './options.ts'
import { readJsonFromStdin } from './read-stdin.ts'
import { verifyLeaderboardCommand } from './verify-leaderboard.ts'
import { verifyStatsCommand } from './verify-stats.ts'

type VerifyOptions = ServiceOptions & { signature?: string; signer?: string }

/**
 * `ats verify`: checks a quote, or a signature of one, on this machine; `ats verify leaderboard` and `stats`. Signs
 * nothing.
 */
export function verifyCommand(): Command {
  return createServiceCommand(
    'verify',
    'check a quote from standard input, and a signature of it, on this machine',
    'ats verify < quote.json',
    'ats verify --signature 0x… --signer 0x… < quote.json',
  )
    .option('--signature <hex>', 'signature of the typed data')
    .option('--signer <address>', "address that must have signed; the quote's signer by default")
    .action(verify)
    .enablePositionalOptions()
    .addCommand(verifyLeaderboardCommand())
    .addCommand(verifyStatsCommand())
}

async function verify({ url, timeout, output, ...given }: VerifyOptions): Promise<void> {
  const quote = await readJsonFromStdin('a quote with typedData')
  const pins = await pinsOf(homeFolder(), url, createReader({ url, timeout }))
  const signable = parseSignable(quote.typedData, pins, url)
  const { primaryType, message, digest } = signable
  const expected = signerOf(given.signer ?? quote.signer)
  const signature = given.signature ?? quote.signature
  const digestMatches = quote.digest === undefined || quote.digest === digest
  const recovered = signature === undefined ? undefined : await recover(signable, signature)
  const signatureMatches = recovered === undefined || expected === undefined || recovered === expected
  const valid = digestMatches && signatureMatches
  createPrinter(output).result({
    valid,
    primaryType,
    digest,
    digestMatches,
    recoveredSigner: recovered ?? null,
    message,
  })
  if (!valid)
    throw new Failure(
      'mismatch',
      digestMatches
        ? `The signature is by ${recovered}, not by ${expected}.`
        : `The quote has the digest ${quote.digest}; its typed data has ${digest}.`,
      {
        code: digestMatches ? 'INVALID_SIGNATURE' : 'DIGEST_MISMATCH',
        remedy: 'Request a new quote and sign it again.',
      },
    )
}

async function recover(
  { definition }: { definition: Parameters<typeof recoverTypedDataAddress>[0] | object },
  signature: unknown,
) {
  if (!isHex(signature)) throw notHex()
  try {
    return await recoverTypedDataAddress({ ...definition, signature } as Parameters<typeof recoverTypedDataAddress>[0])
  } catch {
    throw notHex()
  }
}

const notHex = () =>
  new Failure('usage', 'The signature is not 65 bytes of hex.', {
    code: 'SIGNATURE_MALFORMED',
    remedy: 'Pass it as 0x followed by 130 hex characters.',
  })

function signerOf(given: unknown): Address | undefined {
  if (given === undefined) return undefined
  if (typeof given === 'string' && isAddress(given)) return given
  throw new Failure('usage', 'The signer is not an address.', {
    code: 'INVALID_REQUEST',
    remedy: 'Pass it as 0x followed by 40 hex characters, with its checksum.',
  })
}
