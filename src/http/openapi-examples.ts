import { z } from 'zod'
import { errorCodes } from '../errors/catalogue.ts'

type ExampleSchema = {
  $ref?: string
  type?: string | string[]
  anyOf?: ExampleSchema[]
  allOf?: ExampleSchema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  example?: unknown
  pattern?: string
  properties?: Record<string, ExampleSchema>
  required?: string[]
  items?: ExampleSchema
  additionalProperties?: ExampleSchema | boolean
  minimum?: number
  description?: string
}

/** Returns an example of a schema on the wire, assembled from the examples of its leaves, with every optional field. */
export function exampleOf(schema: z.ZodType): unknown {
  const { $defs = {}, ...root } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as ExampleSchema & {
    $defs?: Record<string, ExampleSchema>
  }
  return instance(root, $defs)
}

function instance(schema: ExampleSchema, definitions: Record<string, ExampleSchema>, name = ''): unknown {
  const { $ref, example, enum: values, anyOf, properties, items, additionalProperties: others } = schema
  const [type] = [schema.type].flat()
  if (example !== undefined) return example
  if ($ref !== undefined) return instance(definitions[$ref.slice($ref.lastIndexOf('/') + 1)] ?? {}, definitions, name)
  if (schema.const !== undefined) return schema.const
  if (schema.default !== undefined) return type === 'string' ? `${schema.default}` : schema.default
  if (values !== undefined) return values[0]
  const [first] = anyOf ?? schema.allOf ?? []
  if (first !== undefined) return instance(first, definitions, name)
  if (properties !== undefined)
    return consistent(
      Object.fromEntries(Object.entries(properties).map(([key, inner]) => [key, instance(inner, definitions, key)])),
    )
  if (items !== undefined) return [instance(items, definitions, name)]
  if (typeof others === 'object') return { NVDA: instance(others, definitions, name) }
  if (type === 'integer' || type === 'number')
    return schema.minimum !== undefined && schema.minimum > 0 ? schema.minimum : 1
  if (type === 'boolean') return true
  if (type === 'object') return {}
  return schema.pattern === undefined ? (texts[name] ?? schema.description ?? name) : exampleOfPattern(schema.pattern)
}

/** Examples of texts without an example of their own, by the name of their field. */
const texts: Record<string, string> = {
  after: '350000000',
  allowedSymbols: 'NVDA',
  assetSymbol: 'USDC',
  baseUrl: 'https://api.example',
  bindingRule: 'maxTradeSize',
  code: 'EXCEEDS_ALLOCATION_CAP',
  data: '0x5f5f5f5f',
  description: 'Large caps with a moderate risk policy',
  digest: `0x${'5f'.repeat(32)}`,
  domainName: 'TradeRouter',
  domainVersion: '1',
  error: 'The trade is larger than the allocation allows.',
  facilitatorUrl: 'https://api.example/facilitator',
  id: 'genesis',
  invalidReason: 'invalid_exact_evm_insufficient_balance',
  limit: '1000000000',
  message: 'Agent 1 is registered.',
  metadataURI: 'https://agents.example/momentum-7.json',
  missing: 'TradeRouter',
  name: 'momentum-7',
  network: 'eip155:8453',
  nextCursor: 'MTIzNC01',
  nonce: '0',
  openPositionIds: '3',
  payTo: `0x${'5f'.repeat(20)}`,
  priceUsd: '120.5',
  primaryType: 'OpenPosition',
  problem: 'the signature is not over this message',
  remedy: 'Get a quote: maxUsdcAmountHuman is the largest amount that passes.',
  scheme: 'exact',
  selfRegisterTypehash: `0x${'5f'.repeat(32)}`,
  service: 'agent-trading-service',
  slug: 'genesis',
  staleSymbols: 'NVDA',
  statusName: 'Active',
  summary: 'List vaults',
  symbol: 'NVDA',
  tagline: 'Large caps, moderate risk',
  trackName: 'Challenge',
  type: 'uint256',
  used: '100000000',
  vaultId: 'genesis',
  vaultIds: 'genesis',
  version: '1',
  warnings: 'The market is closed: the price may become stale before the trade.',
}

/** Makes the example of a quote agree with itself: `eip712` describes what `typedData` signs. */
function consistent(example: Record<string, unknown>): Record<string, unknown> {
  const { eip712, typedData } = example as { eip712?: object; typedData?: { primaryType: string; types: object } }
  if (eip712 === undefined || typedData === undefined) return example
  const { primaryType } = typedData
  const types = Object.fromEntries(Object.entries(typedData.types).filter(([name]) => name === primaryType))
  return { ...example, eip712: { ...eip712, primaryType, types } }
}

/** Returns a text that matches one of the few patterns in use: a hash, an address, a signature or digits. */
function exampleOfPattern(pattern: string): string {
  const [, digits] = /\{(40|64)\}/.exec(pattern) ?? []
  if (digits !== undefined) return `0x${'5f'.repeat(Number(digits) / 2)}`
  return pattern.includes('0x') ? `0x${'5f'.repeat(65)}` : '1'
}

/** Returns an example error body of a status. */
export function errorExample(status: number) {
  const found = errorCodes.find(code => code.status === status) ?? { code: 'PAYMENT_REQUIRED', remedy: undefined }
  return {
    error: 'A message that says what is wrong.',
    code: found.code,
    requestId: '5e7ad1ca-6fc2-4a5f-8b8a-3d6f0f2f7f11',
    ...(found.remedy !== undefined && { remedy: found.remedy }),
  }
}
