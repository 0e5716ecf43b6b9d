import { Command, InvalidArgumentError, Option } from 'commander'
import { type Address, getAddress, isAddress } from 'viem'
import type { OutputFormat } from '../output/printer.ts'
import { DEFAULT_MAX_FEE } from '../trading/fee-payer.ts'
import { urlProblem } from '../trading/service-url.ts'

export const DEFAULT_URL = 'http://127.0.0.1:8787'

/** What every command that uses the service takes. */
export type ServiceOptions = { url: string; timeout: number; output: OutputFormat }
/** What a command takes that signs. */
export type SigningOptions = ServiceOptions & {
  key?: string
  passwordFile?: string
  rpc?: string
  dryRun?: boolean
  yes?: boolean
}

const urlOption = () =>
  new Option('--url <url>', 'base URL of the service').env('ATS_URL').default(DEFAULT_URL).argParser(serviceUrl)
const timeoutOption = () =>
  new Option('--timeout <seconds>', 'how long to retry while the service is unavailable')
    .env('ATS_TIMEOUT')
    .default(60)
    .argParser(integer(1, 3_600))
const outputOption = () =>
  new Option('-o, --output <format>', 'how results are printed')
    .choices(['table', 'json'])
    .env('ATS_OUTPUT')
    .default('table')
export const keyOption = (): Option =>
  new Option('--key <name>', 'name or address of a stored key; never the key itself').env('ATS_KEY')
export const passwordFileOption = (): Option =>
  new Option('--password-file <path>', "file whose first line is the key's password").env('ATS_PASSWORD_FILE')
export const ownerOption = (): Option =>
  new Option('--owner <name>', 'stored key that owns the agent; the signing key by default').env('ATS_OWNER')
export const ownerPasswordFileOption = (): Option =>
  new Option('--owner-password-file <path>', "file with the owner's password; the signing key's by default").env(
    'ATS_OWNER_PASSWORD_FILE',
  )
export const rpcOption = (description = 'node that confirms the contracts and the chain before anything is signed') =>
  new Option('--rpc <url>', description).env('ATS_RPC')
export const payerOption = (): Option =>
  new Option('--payer <name>', 'stored key that pays the registration fee; the signing key by default').env('ATS_PAYER')
export const payerPasswordFileOption = (): Option =>
  new Option('--payer-password-file <path>', "file with the payer's password; the signing key's by default").env(
    'ATS_PAYER_PASSWORD_FILE',
  )
export const maxFeeOption = (): Option =>
  new Option('--max-fee <usdc>', 'largest registration fee to pay').default(DEFAULT_MAX_FEE).argParser(usdcAmount)
export const agentOption = (): Option =>
  new Option('--agent <id>', 'id of the agent').env('ATS_AGENT').argParser(digits)

/** Creates a command that only has commands of its own, with an example in its help. */
export function createGroup(name: string, description: string, ...examples: string[]): Command {
  return new Command(name)
    .description(description)
    .addHelpText('after', `\nExample:\n${examples.map(example => `  $ ${example}`).join('\n')}`)
}

/** Creates a command with the output option and an example in its help. */
export const createCommand = (...args: Parameters<typeof createGroup>): Command =>
  createGroup(...args).addOption(outputOption())

/** Creates a command that reads from the service. */
export const createServiceCommand = (...args: Parameters<typeof createCommand>): Command =>
  createCommand(...args)
    .addOption(urlOption())
    .addOption(timeoutOption())

/** Creates a command that signs. */
export const createSigningCommand = (...args: Parameters<typeof createCommand>): Command =>
  createServiceCommand(...args)
    .addOption(keyOption())
    .addOption(passwordFileOption())
    .addOption(rpcOption())
    .option('--dry-run', 'show the checks and what would be signed, and sign nothing')
    .option('-y, --yes', 'do not ask before signing')

/** Parses the base URL of a service. */
export function serviceUrl(text: string): string {
  const problem = urlProblem(text)
  if (problem === undefined) return text
  throw new InvalidArgumentError(problem)
}

/** Parses an option of digits. */
export function digits(text: string): string {
  if (/^\d{1,78}$/.test(text)) return text
  throw new InvalidArgumentError('Digits are expected.')
}

/** Parses an address, and returns it with its checksum. */
export function accountAddress(text: string): Address {
  if (isAddress(text, { strict: false })) return getAddress(text)
  throw new InvalidArgumentError('An address is expected.')
}

/** Parses a whole number within bounds. */
export const integer =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text)
    if (/^\d{1,9}$/.test(text) && value >= min && value <= max) return value
    throw new InvalidArgumentError(`A whole number from ${min} to ${max} is expected.`)
  }

/** Parses an amount in USDC. Text, because a number would lose digits. */
export function usdcAmount(text: string): string {
  if (/^\d{1,15}(\.\d{1,6})?$/.test(text) && Number(text) > 0) return text
  throw new InvalidArgumentError('An amount in USDC is expected, such as 250 or 99.50, with at most six decimals.')
}
