import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ordersForTable } from '../../packages/cli/src/commands/order.ts'
import { forTable } from '../../packages/cli/src/commands/what-if.ts'
import { chosenColumns, type Json, listsOf, renderTable } from '../../packages/cli/src/output/table.ts'
import recorded from '../../src/generated/recorded-examples.json' with { type: 'json' }

type Schema = {
  $ref?: string
  type?: string
  items?: Schema
  properties?: Record<string, Schema>
  anyOf?: Schema[]
  oneOf?: Schema[]
}
type Operation = { operationId: string; responses: Record<string, { content?: Record<string, { schema: Schema }> }> }

/** What the API documents; `npm run client` writes the file. */
const document: { paths: Record<string, { get?: Operation }>; components: { schemas: Record<string, Schema> } } =
  JSON.parse(readFileSync(join(import.meta.dirname, '../../packages/python/openapi.json'), 'utf8'))

function variants(schema: Schema): Schema[] {
  if (schema.$ref !== undefined) return variants(document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {})
  return [schema, ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap(variants)]
}
const propertiesOf = (schema: Schema) => variants(schema).flatMap(({ properties = {} }) => Object.entries(properties))

/** Returns the lists of a response by name, each with the paths of its fields. */
function documentedLists(schema: Schema): [name: string, fields: string[]][] {
  return propertiesOf(schema).flatMap(([name, property]): [string, string[]][] => {
    const items = variants(property).find(({ type }) => type === 'array')?.items
    if (items === undefined) return documentedLists(property)
    const fields = fieldsOf(items)
    return fields.length > 0 ? [[name, fields]] : []
  })
}
const fieldsOf = (schema: Schema): string[] =>
  propertiesOf(schema).flatMap(([name, property]) => [name, ...fieldsOf(property).map(inner => `${name}.${inner}`)])

const reads = Object.entries(document.paths).flatMap(([path, { get }]) => {
  const schema = get?.responses['200']?.content?.['application/json']?.schema
  return get && schema && !path.endsWith('/quote') ? [[get.operationId, schema] as const] : []
})

it.each(reads)('every list of %s has columns, of fields that it has', (id, schema) => {
  for (const [list, fields] of documentedLists(schema)) {
    const columns = chosenColumns[`${id}.${list}`] ?? chosenColumns[list]
    expect(columns, `columns of ${list}`).toBeDefined()
    for (const column of columns ?? []) {
      const [names = ''] = column.split(' as ')
      const known = names.split('|').filter(name => fields.includes(name))
      expect(known, `${column} of ${list}`).not.toEqual([])
    }
  }
})

type Responses = Record<string, Record<string, Json>>
const address = (digit: string) => `0x${digit.repeat(40)}`
const examples: [of: string, response: Json][] = [
  ...Object.entries(recorded.operations as Record<string, { responses: Responses }>)
    .filter(([id]) => id !== 'listOrders' && reads.some(([read]) => read === id))
    .map(([id, { responses }]): [string, Json] => [id, responses['200']?.['application/json'] ?? null]),
  ['whatIf', forTable(recorded.operations.whatIf.responses[200]['application/json'] as never) as never],
  ['listOrders', ordersForTable(recorded.operations.listOrders.responses[200]['application/json'] as never) as never],
  [
    'pastOrders',
    ordersForTable({
      orders: [
        { orderId: `0x${'ab'.repeat(32)}`, state: 'failed', endReason: null, lastRefusal: { code: 'ENTRY_SLIPPAGE' } },
        { orderId: `0x${'cd'.repeat(32)}`, state: 'cancelled', endReason: 'positionClosed', lastRefusal: null },
      ].map(order => ({
        ...order,
        side: 'open',
        symbol: 'NVDA',
        usdcAmount: '250000000',
        validUntil: '1',
        endedAt: '1',
      })),
    } as never) as never,
  ],
  [
    'roles',
    {
      roles: [
        { power: 'operators.allocationManager', contract: 'AllocationManager', role: '0x', account: address('a') },
        { power: 'guardians', contract: 'TradeRouter', role: '0x', account: address('b') },
      ],
    },
  ],
  [
    'listOwnerEvents',
    {
      events: [
        { type: 'MandateUpdated', owner: address('a'), mandate: { mode: 'reduceOnly' }, timestamp: '1790000000' },
        { type: 'AgentSignerUpdated', signer: address('b'), timestamp: '1790000000' },
      ],
    },
  ],
]
const lists = examples.flatMap(([of, response]) => listsOf(response).map(([list, rows]) => ({ of, list, rows })))

describe('the table of', () => {
  it.each(lists)('$list of $of shows every column within 80 characters, and no part of an id', ({ of, list, rows }) => {
    const [, title = '', ...lines] = renderTable({ [list]: rows }, { of }).split('\n')
    const fields = new Set(rows.flatMap(row => [...pathsOf(row)]))
    const columns = chosenColumns[`${of}.${list}`] ?? chosenColumns[list] ?? []
    const present = columns.filter(column => (column.split(' as ')[0] ?? '').split('|').some(name => fields.has(name)))
    expect(title.split(/ {2,}/)).toHaveLength(present.length)
    expect(lines).toHaveLength(rows.length)
    for (const line of [title, ...lines]) {
      expect(line.length).toBeLessThanOrEqual(80)
      expect(line).not.toMatch(/0x[0-9a-fA-F]*…/)
    }
  })

  it.each([
    ['roles', /operators\.allocationManager {2}0xa{40} {2}Alloca…\n/],
    ['listOwnerEvents', / ago +reduceOnly +MandateUpdated\n.* ago +0xb{40} +AgentSignerUpdated$/],
    ['pastOrders', /failed +ENTRY_SLIPPAGE.*\n.*cancelled +positionClosed/],
    ['listClosedPositions', /^id +symbol +entry +exit +pnl +return +closedBy +closedAt\n.* \d+\.\d{6} .* stop-loss/m],
    ['getCandles', /^time +open +high +low +close +posts\n.* 180\.25/m],
    ['getGasQuota', /^budget +minute\.limitGas +minute\.leftGas +hour\.limitGas +hour\.leftGas\n/m],
    ['whatIf', /^figure +before +after\nequityUsdc +9999\.735483 +9989\.706211\n/m],
  ])('%s answers the command', (name, expected) => {
    const shown = examples.filter(([of]) => of === name).map(([of, response]) => renderTable(response, { of }))
    expect(
      shown.some(text => expected.test(text)),
      shown.join('\n\n'),
    ).toBe(true)
  })
})

function pathsOf(value: Json, prefix = ''): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [prefix]
  return Object.entries(value).flatMap(([name, inner]) => pathsOf(inner, prefix === '' ? name : `${prefix}.${name}`))
}
