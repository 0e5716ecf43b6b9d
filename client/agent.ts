import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { type Hex, isHex, type TypedDataDefinition } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { createPayer } from '../packages/client/src/pay.ts'
import { promoteAgent } from '../scripts/promote-agent.ts'

// A command line to use with curl: creates keys, registers and promotes agents, and signs quotes. Keys never leave this
// process.
//   npm run -s agent -- key
//   npm run -s agent -- register --key 0x… --name NAME [--vault genesis] [--payer 0x…] [--base URL]
//   curl …/quote | npm run -s agent -- sign --key 0x… | curl … -d @-
//   npm run -s agent -- promote --agent 1 [--payer 0x…] [--rpc URL] [--base URL]

// biome-ignore lint/suspicious/noExplicitAny: responses of the API, which are read without validation
type Json = any

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    key: { type: 'string' },
    payer: { type: 'string' },
    name: { type: 'string' },
    vault: { type: 'string', default: 'genesis' },
    agent: { type: 'string' },
    rpc: { type: 'string' },
    base: { type: 'string', default: process.env.BASE ?? 'http://127.0.0.1:8787' },
  },
})

async function key() {
  console.log(generatePrivateKey())
}

/** Registers the key as an agent: requests a quote, signs it, pays the fee if there is one, and prints the agent's id. */
async function register() {
  const account = accountOf(values.key, '--key')
  const { vault } = await get(`/vaults/${values.vault}`)
  const query = new URLSearchParams({
    signer: account.address,
    vault: vault.contractAddress,
    name: values.name ?? 'agent',
    metadataURI: 'https://agents.example/agent.json',
  })
  const quote = await get(`/agents/register/quote?${query}`)
  const body = { ...quote.body, signature: await signed(account, quote.typedData) }
  const request = new Request(`${values.base}/agents/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const { x402, registrationFee } = quote
  const send = x402.enabled ? payerFor(x402.network, registrationFee).fetch : fetch
  console.log((await bodyOf(await send(request))).agentId)
}

function payerFor(network: string, { tokenAddress, amount }: Json) {
  const chainId = Number(network.split(':')[1])
  return createPayer({ account: payer(), chainId, asset: tokenAddress, maxAmount: BigInt(amount) })
}

/** Reads a quote from standard input, signs its typed data and prints the body to post. */
async function sign() {
  const quote: Json = JSON.parse(await text(process.stdin))
  if (quote.typedData === undefined)
    throw new Error(`The input is not a quote with typedData: ${JSON.stringify(quote)}`)
  const signature = await signed(accountOf(values.key, '--key'), quote.typedData)
  console.log(JSON.stringify({ ...quote.body, signature }))
}

/** Promotes an agent on chain once it is eligible, and prints the transaction's hash. Anybody may. */
async function promote() {
  const { promotionReadiness } = await get(`/agents/${values.agent}/risk-state`)
  if (!promotionReadiness.eligible)
    throw new Error(`Agent ${values.agent} cannot be promoted yet: ${promotionReadiness.blockers.join('; ')}.`)
  const { contracts } = await get('/')
  const rpcUrl = values.rpc ?? embeddedChain('the URL of a node as --rpc').rpcUrl
  console.log(
    await promoteAgent({ rpcUrl, registry: contracts.AgentRegistry, sender: payer() }, BigInt(values.agent ?? '')),
  )
}

function signed(account: PrivateKeyAccount, { types: { EIP712Domain: _, ...types }, ...rest }: Json): Promise<Hex> {
  return account.signTypedData({ ...rest, types } as TypedDataDefinition)
}

function accountOf(privateKey: string | undefined, option: string): PrivateKeyAccount {
  if (!isHex(privateKey) || privateKey.length !== 66)
    throw new Error(`${option} must be 0x followed by 64 hex characters.`)
  return privateKeyToAccount(privateKey)
}

/** Returns the account that pays fees: --payer, or the funded payer of the embedded chain. */
function payer(): PrivateKeyAccount {
  if (values.payer !== undefined) return accountOf(values.payer, '--payer')
  return privateKeyToAccount(embeddedChain('the key that pays as --payer').accounts.payer.privateKey)
}

/** Returns the deployment of the embedded chain that runs now; throws with what to pass instead. */
function embeddedChain(instead: string): Json {
  try {
    return JSON.parse(readFileSync(join(import.meta.dirname, '../.devnet/deployment.json'), 'utf8'))
  } catch {
    throw new Error(`No embedded chain is running here: pass ${instead}.`)
  }
}

const get = async (path: string): Promise<Json> => bodyOf(await fetch(values.base + path))

async function bodyOf(response: Response): Promise<Json> {
  const body: Json = await response.json()
  if (!response.ok) throw new Error(`${response.status} ${body.code}: ${body.error} ${body.remedy ?? ''}`)
  return body
}

const commands: Record<string, () => Promise<void>> = { key, register, sign, promote }
const command = commands[positionals[0] ?? '']
if (command === undefined) {
  console.error(`Usage: agent ${Object.keys(commands).join(' | ')}`)
  process.exit(2)
}
await command().catch(error => {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
})
