import { type InputSchema, losslessInput } from '@agent-trading-service/protocol/lossless-input'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Failure } from '../../packages/cli/src/failure.ts'
import { listedLocalTools, localTools, parseInput } from '../../packages/cli/src/mcp/local-tools.ts'
import { operations } from '../../src/operations/index.ts'
import { hostProblems } from '../support/host-problems.ts'

const fields = z.object({
  text: z.string().optional(),
  count: z.int().optional(),
  share: z.number().optional(),
  flag: z.boolean().optional(),
  choice: z.enum(['true', 'false', '1']).optional(),
  limit: z.string().nullable().optional(),
  rules: z.array(z.object({ triggerBps: z.int(), note: z.string().optional() })).optional(),
  names: z.array(z.string()).optional(),
  inner: z.object({ count: z.int(), id: z.string() }).optional(),
  symbols: z.string().meta({ 'x-list': 'comma' }).optional(),
  ladder: z.string().meta({ 'x-list': 'json' }).optional(),
})
const schema = z.toJSONSchema(fields, { io: 'input' }) as InputSchema
const convert = (field: string, value: unknown) =>
  (losslessInput({ [field]: value }, schema) as Record<string, unknown>)[field]

describe('the input of a tool', () => {
  it.each<[string, unknown, unknown]>([
    ['count', '-800', -800],
    ['count', '0', 0],
    ['text', 30, '30'],
    ['text', 250.5, '250.5'],
    ['text', Number.MAX_SAFE_INTEGER, '9007199254740991'],
    ['share', '0.25', 0.25],
    ['flag', 'true', true],
    ['flag', 'false', false],
    ['choice', true, 'true'],
    ['choice', 1, '1'],
    ['names', '["a","b"]', ['a', 'b']],
    ['names', [7, 'b'], ['7', 'b']],
    ['rules', '[{"triggerBps":"-800","note":7}]', [{ triggerBps: -800, note: '7' }]],
    ['rules', [{ triggerBps: '-800', note: null }], [{ triggerBps: -800 }]],
    ['rules', [{ triggerBps: -800, note: '' }], [{ triggerBps: -800 }]],
    ['rules', ['{"triggerBps": -800}'], [{ triggerBps: -800 }]],
    ['inner', '{"count":"1","id":2}', { count: 1, id: '2' }],
    ['symbols', ['NVDA', 'AAPL'], 'NVDA,AAPL'],
    ['ladder', [{ triggerBps: -800, exitBps: 10_000 }], '[{"triggerBps":-800,"exitBps":10000}]'],
    ['limit', 5, '5'],
    ['limit', null, null],
  ])('the input of a tool in %s is converted from %j to %j', (field, given, converted) => {
    expect(convert(field, given)).toEqual(converted)
    expect(fields.safeParse({ [field]: converted }).success).toBe(true)
  })

  it('the input of a tool is absent where a strict schema made the model fill a field with what it refuses', () => {
    const forced = z.object({
      amount: z.string().regex(/^0*[1-9]\d*$/),
      parts: z.int().min(1),
      symbols: z.string().meta({ 'x-list': 'comma' }),
      rules: z.array(z.string()).min(1),
      choice: z.enum(['a', 'b']),
      id: z.string().regex(/^0x/),
    })
    const optional = z.toJSONSchema(forced.partial(), { io: 'input' }) as InputSchema
    for (const empty of [0, '0', [], '[]', '', null])
      for (const field of Object.keys(forced.shape))
        expect(losslessInput({ [field]: empty }, optional), `${field}: ${JSON.stringify(empty)}`).toEqual({})
    const required = z.toJSONSchema(forced, { io: 'input' }) as InputSchema
    expect(losslessInput({ amount: 0, parts: 0, rules: [] }, required)).toEqual({ amount: '0', parts: 0, rules: [] })
  })

  it('the input of a tool keeps an empty value that its schema accepts: a track, a time, a limit or no slippage', () => {
    const inputOf = (id: string) =>
      z.toJSONSchema((operations.find(operation => operation.id === id) as { input: z.ZodType }).input, {
        io: 'input',
        unrepresentable: 'any',
      }) as InputSchema
    for (const [id, given] of [
      ['listAgents', { track: '0', status: '0' }],
      ['getCandles', { symbol: 'NVDA', from: '0', to: '0' }],
      ['getLeaderboard', { minTrades: 0, track: '0', at: '0' }],
      ['getMandateQuote', { agentId: '1', maxTradeUsdc: '0', allowedTokens: [] }],
      ['getFirstLossQuote', { agentId: '1', shares: '0' }],
      ['getTradeIntentQuote', { agentId: '1', maxSlippageBps: 0, minTokenOut: '0' }],
    ] as const)
      expect(losslessInput(given, inputOf(id))).toEqual(given)
  })

  it('the input of place_order has only what says something, whatever else a strict schema made the model fill', () => {
    const input = localTools.place_order?.input as z.ZodObject
    const schema = z.toJSONSchema(input, { io: 'input' }) as InputSchema
    const forced = Object.entries({ ...schema.properties }).map(([name, { type }]) => {
      const text = ['symbol', 'note'].includes(name) ? '' : '0'
      return [name, type === 'array' ? [] : type === 'integer' ? 0 : text] as const
    })
    const kept = { maxSlippageBps: 0, validAfter: '0', key: '0' }
    for (const given of [
      { type: 'limit', symbol: 'NVDA', usdcAmount: '250', price: '120' },
      { type: 'trailingStop', positionId: '3', trailPercent: '5' },
      { type: 'timeExit', positionId: '3', validAfter: '2000000000' },
    ]) {
      const filled = { ...Object.fromEntries(forced), ...given }
      expect(parseInput(input, filled)).toEqual(parseInput(input, { ...kept, ...given }))
    }
  })

  it('the tools of `ats mcp` have only schemas that every host converts', () => {
    for (const { name, inputSchema } of listedLocalTools(['sign', 'confirm', 'read']))
      expect(hostProblems({ ...inputSchema }, name)).toEqual([])
  })

  it.each(['text', 'count', 'share', 'flag', 'choice', 'rules', 'names', 'inner', 'symbols'])(
    'the input of a tool is absent in the optional field %s if it is null or empty',
    field => {
      for (const empty of [null, '']) expect(losslessInput({ [field]: empty }, schema)).toEqual({})
    },
  )

  it.each<[string, unknown]>([
    ['count', '9007199254740993'],
    ['count', '1e3'],
    ['count', '0x10'],
    ['count', '007'],
    ['count', '+5'],
    ['count', ' 5'],
    ['count', '-0'],
    ['count', '5.0'],
    ['count', 1.5],
    ['count', true],
    ['share', '0.10'],
    ['share', 'Infinity'],
    ['share', 'NaN'],
    ['text', 9_007_199_254_740_992],
    ['text', 1e21],
    ['text', 1e-7],
    ['text', 0.1 + 0.2],
    ['text', true],
    ['text', ['a']],
    ['text', { a: 1 }],
    ['flag', 'True'],
    ['flag', 1],
    ['rules', '[{"triggerBps":9007199254740993}]'],
    ['rules', '[{"triggerBps":1e2}]'],
    ['rules', '[{"triggerBps":1,"triggerBps":2}]'],
    ['rules', '{"triggerBps":1}'],
    ['names', 'a,b'],
    ['names', '["a"'],
    ['symbols', ['a,b']],
    ['symbols', ['']],
  ])('the input of a tool in %s stays %j, which the schema refuses or names', (field, given) => {
    expect(convert(field, given)).toEqual(given)
  })

  it('the input of a tool keeps fields that the schema does not have', () => {
    const given = JSON.parse('{"__proto__":{"count":"1"},"constructor":"2","other":null}')
    expect(losslessInput(given, schema)).toEqual(given)
  })
})

const oddInputs: unknown[] = [
  { toString: null, valueOf: null },
  ...['', ' ', '-1', '1e3', '0x10', 'NaN', '1.5', '\ud800', '😀'.repeat(40), '9'.repeat(400), 'x'.repeat(5_000)],
  ...[0, -1, 1.5, 2 ** 53, 1e300, true, null, [], {}, [[]], [{}], { a: { b: 1 } }, [null], ['x']],
  ...['[{"triggerBps":-800}]', '[{"triggerBps":9007199254740993,"exitBps":0}]', '{"toString":1}'],
]

/** What a validator says, and no sentence does. */
const DUMP = /Invalid (input|string|option|number)|Too (big|small)|Unrecognized|expected \w+ to|must match pattern|zod/i

describe('a refused input', () => {
  const parsers = [
    ...Object.entries(localTools).map(([name, { input }]) => ({
      name,
      shape: input.shape,
      parse: (given: Record<string, unknown>) => parseInput(input, given),
    })),
    ...operations.flatMap(operation =>
      operation.kind === 'json' && 'tool' in operation && operation.tool
        ? [
            {
              name: operation.tool.name as string,
              shape: operation.input.shape as Record<string, unknown>,
              parse: (given: Record<string, unknown>) => operation.parse(given),
            },
          ]
        : [],
    ),
  ]

  it.each(parsers)(
    'a refused input of $name names field, value and remedy, and dumps no validator',
    ({ shape, parse }) => {
      for (const field of Object.keys(shape))
        for (const value of oddInputs) {
          try {
            parse({ [field]: value })
          } catch (error) {
            const text = refusalText(error)
            expect(text).not.toMatch(DUMP)
            expect(text.isWellFormed()).toBe(true)
            expect(text).toMatch(/remedy/)
          }
        }
    },
  )
})

function refusalText(error: unknown): string {
  if (error instanceof Failure) return JSON.stringify({ error: error.message, ...error.facts })
  if (error instanceof Error && 'body' in error) return JSON.stringify(error.body)
  throw error
}
