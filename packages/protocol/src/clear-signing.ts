import type { Address } from 'viem'
import { usdcText } from './check-figures.ts'
import { type FieldName, isTicker, namedFields } from './message-terms.ts'
import { percentText } from './percent.ts'
import { type Domain, type PrimaryType, signingTypes } from './typed-data.ts'

/** How a wallet shows a field: a format of ERC-7730 with its parameters, and the values at which it says nothing. */
type ClearFormat = {
  format: 'raw' | 'addressName' | 'tokenTicker' | 'tokenAmount' | 'date' | 'duration' | 'unit' | 'enum'
  params?: Readonly<Record<string, unknown>>
  visible?: { ifNotIn: readonly number[] }
  /** In place of the name in words, where a wallet cannot put a value into words. */
  label?: string
}

const raw: ClearFormat = { format: 'raw' }
const time: ClearFormat = { format: 'date', params: { encoding: 'timestamp' } }
const percent: ClearFormat = { format: 'unit', params: { base: '%', decimals: 2 } }
const usdc: ClearFormat = { format: 'tokenAmount', params: { token: '$.metadata.constants.usdc' } }
const account: ClearFormat = { format: 'addressName', params: { types: ['wallet', 'eoa', 'contract'] } }
const contract: ClearFormat = { format: 'addressName', params: { types: ['contract'] } }
const oneOf = (names: keyof typeof enums): ClearFormat => ({
  format: 'enum',
  params: { $ref: `$.metadata.enums.${names}` },
})
const unless = (value: number, format: ClearFormat): ClearFormat => ({ ...format, visible: { ifNotIn: [value] } })
const limit = (label: string): ClearFormat => ({ ...usdc, label: `${label} (0: no max)` })

/** The format of every field. */
const formats: Record<FieldName, ClearFormat> = {
  side: oneOf('sides'),
  mode: oneOf('modes'),
  usdcAmount: usdc,
  exitBps: unless(0, percent),
  shares: { format: 'unit', params: { base: 'shares', decimals: 12 } },
  token: { format: 'tokenTicker' },
  positionId: unless(0, raw),
  agentId: raw,
  agentIds: raw,
  maxTradeUsdc: limit('one buy'),
  maxDailyTurnoverUsdc: limit('24 h'),
  maxExposureUsdc: limit('all open'),
  allowedTokens: { format: 'tokenTicker', label: 'may buy (none: all)' },
  maxSlippageBps: percent,
  minTokenOut: unless(0, { ...raw, label: 'fewest base units' }),
  condition: oneOf('conditions'),
  price: unless(0, { format: 'unit', params: { base: 'USD', decimals: 8 } }),
  trailBps: unless(0, percent),
  parts: unless(1, raw),
  interval: unless(0, { format: 'duration' }),
  exitsHash: { ...raw, label: 'exit rules (hash)' },
  newOwner: account,
  signer: account,
  vault: contract,
  orderId: raw,
  untilNonce: raw,
  linkERC8004: raw,
  erc8004AgentId: unless(0, raw),
  validAfter: unless(0, time),
  validUntil: unless(0, time),
  key: unless(0, { ...raw, label: 'replaces order key' }),
  deadline: time,
  nonce: raw,
  webhookId: raw,
  salt: raw,
  action: raw,
  eventTypes: raw,
  name: raw,
  url: raw,
  metadataURI: raw,
}

/** A descriptor of ERC-7730, version 2. */
export type ClearSigningDescriptor = ReturnType<typeof clearSigningDescriptor>

/** What a message does, as short as a device shows it, and for some a line with its values. */
const intents: Record<PrimaryType, readonly [intent: string, withValues?: string]> = {
  SelfRegister: ['Register an agent'],
  LinkERC8004: ['Link an ERC-8004 identity'],
  OpenPosition: ['Buy a token', 'Buy {token} for at most {usdcAmount}'],
  AddToPosition: ['Buy more of a position', 'Add at most {usdcAmount} to position {positionId}'],
  ReducePosition: ['Sell from a position', 'Sell {exitBps} of position {positionId}'],
  UpdateExitLadder: ['Replace exit rules'],
  PlaceOrder: ['Place an order'],
  CancelOrder: ['Cancel an order'],
  OwnAgent: ['Own a new agent'],
  OfferOwnership: ['Offer an agent'],
  AcceptOwnership: ['Own an offered agent', 'Own agent {agentId}, traded by {signer}'],
  SetSigner: ['Replace the key that trades', 'Let {signer} trade for agent {agentId}'],
  SetMandate: ['Replace a mandate'],
  StopBuying: ['Stop agents from buying'],
  CloseAll: ['Stop agents and sell all'],
  CancelIntents: ['Void signed messages'],
  LockFirstLoss: ['Lock shares for losses'],
  CreateWebhook: ['Create a webhook'],
  ListWebhooks: ['List webhooks'],
  ManageWebhook: ['Change a webhook'],
}

/**
 * What an order does, by `OrderSide`; what a mandate allows, by its mode; what an order waits for, by `OrderCondition`.
 */
const enums = {
  sides: ['new position', 'add to position', 'sell from position'],
  modes: ['trade', 'reduce only', 'stopped'],
  conditions: ['no price', 'price at or below', 'price at or above', 'fall from its peak'],
}

const capitalized = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

/** Returns a primary type as EIP-712 encodes it, such as `ListWebhooks(uint256 agentId,uint256 deadline)`. */
export const encodedType = (primaryType: PrimaryType): string =>
  `${primaryType}(${signingTypes[primaryType].map(({ type, name }) => `${type} ${name}`).join(',')})`

/** Returns how wallets show every field of a message, in the order in which `termsOf` does. */
function formatOf(primaryType: PrimaryType) {
  const types = new Map<string, string>(signingTypes[primaryType].map(({ name, type }) => [name, type]))
  const [intent, withValues] = intents[primaryType]
  return {
    intent,
    ...(withValues !== undefined && { interpolatedIntent: withValues }),
    fields: namedFields(primaryType).map(([field, name]) => {
      const { label = name, ...format } = formats[field]
      return { path: types.get(field)?.endsWith('[]') ? `${field}.[]` : field, label: capitalized(label), ...format }
    }),
  }
}

type Signed = { primaryType: PrimaryType; message: Readonly<Record<string, unknown>> }
type SymbolOf = (token: string) => string | undefined

/** Returns the sentence of the descriptor with the values of a message, as a wallet that has it shows them. */
export function signingSentence({ primaryType, message }: Signed, symbolOf: SymbolOf): string {
  const [intent, withValues = intent] = intents[primaryType]
  return withValues.replace(/\{(\w+)\}/g, (_, field: FieldName) =>
    shownInSentence(formats[field], `${message[field]}`, symbolOf),
  )
}

function shownInSentence({ format, params }: ClearFormat, value: string, symbolOf: SymbolOf): string {
  if (format === 'tokenAmount') return `${usdcText(BigInt(value))} USDC`
  if (format === 'unit' && params?.base === '%') return percentText(Number(value))
  const symbol = format === 'tokenTicker' ? symbolOf(value) : undefined
  return symbol !== undefined && isTicker(symbol) ? symbol : value
}

/**
 * Returns the ERC-7730 descriptor of the messages that one contract, or the service, verifies on a domain: what a
 * hardware wallet shows before it signs them. `asset` is USDC.
 */
export function clearSigningDescriptor(domain: Domain, asset: Address, primaryTypes: readonly PrimaryType[]) {
  return {
    $schema: 'https://eips.ethereum.org/assets/eip-7730/erc7730-v2.schema.json',
    context: {
      eip712: {
        domain: { name: domain.name, version: domain.version },
        deployments: [{ chainId: Number(domain.chainId), address: domain.verifyingContract }],
      },
    },
    metadata: {
      owner: 'Agent Trading Service',
      contractName: domain.name,
      constants: { usdc: asset },
      enums: Object.fromEntries(
        Object.entries(enums).map(([name, values]) => [
          name,
          Object.fromEntries(values.map((value, index) => [`${index}`, capitalized(value)])),
        ]),
      ),
    },
    display: {
      formats: Object.fromEntries(
        primaryTypes.map(primaryType => [encodedType(primaryType), formatOf(primaryType)] as const),
      ),
    },
  }
}
