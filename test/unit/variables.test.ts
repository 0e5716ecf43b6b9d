import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { variables } from '../../scripts/variables.ts'

it('lists exactly the variables that the Worker reads', () => {
  const source = ['src/config/config.ts', 'src/config/variable-schemas.ts', 'src/executor/assemble-lane.ts']
    .map(file => readFileSync(join(import.meta.dirname, '../..', file), 'utf8'))
    .join('\n')
  const uses = source.matchAll(/(?:\b(?:set|variables)\.|\bparseOne\(')([A-Z][A-Z0-9_]+)|\b([A-Z][A-Z0-9_]+): z?\.?\w/g)
  const names = new Set([...uses].map(([, accessed, schemaKey]) => accessed ?? schemaKey))
  names.delete('USDC') // a contract in CONTRACTS
  expect([...names].sort()).toEqual(variables.map(({ name }) => name).sort())
})
