import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const folder = join(import.meta.dirname, '../../contracts/src')

it("no rule of a contract depends on block.number, which is Ethereum's on Arbitrum chains: time counts, and who names a block asks ArbSys first", () => {
  const code = (file: string) => readFileSync(join(folder, file), 'utf8').replaceAll(/\/\/.*|\/\*[\s\S]*?\*\//g, '')
  const readers = globSync('**/*.sol', { cwd: folder }).filter(file => /block\.number|blockhash/.test(code(file)))
  expect(readers.toSorted()).toEqual(['BlockUptimeFeed.sol', 'embedded/Multicall3.sol', 'reader/ServiceReader.sol'])
  for (const file of ['BlockUptimeFeed.sol', 'reader/ServiceReader.sol'])
    expect(code(file)).toMatch(/arbBlockNumber\(\)/)
})
