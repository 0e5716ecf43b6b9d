import { expect, it } from 'vitest'
import { runDemo } from './run-demo.ts'

it('without capital modes the demo agent starts with real capital', async () => {
  const { stdout } = await runDemo(31337, '--protocol-only')
  expect(stdout).toContain('CHALLENGE track: allocation 10000 USDC, capitalMode null')
  expect(stdout).not.toContain('Promotion')
  expect(stdout).toContain('the keeper fires the stop-loss')
  expect(stdout).toMatch(/every step as expected\.\s*$/)
})
