import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { Address } from 'viem'
import { expect, test, vi } from 'vitest'
import { registrationOf } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { faithlessPayer, gasSince, newestBlock, turnWhenSent } from '../support/faithless-payer.ts'
import { fundedPayer } from '../support/fee-ledger.ts'
import { app, carrying, newAccount, payingAs, paymentOf, register, useFeeLedger } from '../support/paid-registration.ts'
import { callOverHttp as call, deployment } from '../support/surfaces.ts'

// HTTP only: payments are sent in HTTP headers.

const { relayer } = deployment.accounts
useFeeLedger()

/** Returns a payment whose signature only the payer's contract can judge. */
async function unsignedPaymentOf(from: string): Promise<Body> {
  const { body } = await call('getRegistrationQuote', {}, app)
  const accepted = body.x402.requirements
  const now = Math.floor(Date.now() / 1000)
  return {
    x402Version: 2,
    accepted,
    payload: {
      signature: `0x${'11'.repeat(66)}`,
      authorization: {
        from,
        to: accepted.payTo,
        value: accepted.amount,
        validAfter: '0',
        validBefore: `${now + accepted.maxTimeoutSeconds}`,
        nonce: newAccount().address.padEnd(66, '0').toLowerCase(),
      },
    },
  }
}

/** Registers a new agent with a payment whose settlement reverts. */
async function burn(payer: Address) {
  const body = await registrationOf(newAccount())
  const payment = await unsignedPaymentOf(payer)
  await turnWhenSent(payer)
  return register(body, carrying(payment))
}

test('a contract whose signature turns invalid burns the gas of one settlement, then waits longer and longer', async () => {
  const payer = await faithlessPayer()
  const start = await newestBlock()
  const codes: string[] = []
  for (let attempt = 0; attempt < 8; attempt++) codes.push((await burn(payer)).body.code)
  const { gas, reverts } = await gasSince(relayer.address, start)
  expect(reverts).toBe(1)
  expect(gas).toBeLessThan(200_000n)
  expect(codes).toEqual(['PAYMENT_REFUSED', ...Array(7).fill('TOO_MANY_REVERTS')])
  const refused = await burn(payer)
  expect(refused).toMatchObject({ status: 503, body: { retryable: true } })
  const wait = Number(refused.headers.get('Retry-After'))
  expect(wait).toBeGreaterThan(0)
  expect(wait).toBeLessThanOrEqual(60)
})

test('a crowd of fresh contracts burns the gas of one small budget, and keys still pay', async () => {
  const start = await newestBlock()
  const startedAt = Date.now()
  const burnt = []
  for (let attempt = 0; attempt < 12; attempt++) burnt.push(await burn(await faithlessPayer()))
  const { reverts, gas } = await gasSince(relayer.address, start)
  const budgets = 1 + (Date.now() - startedAt) / 60_000 // it refills meanwhile
  expect(reverts / budgets).toBeLessThan(8)
  expect(Number(gas) / budgets).toBeLessThan(1_000_000)
  const refused = burnt.find(({ status }) => status === 429)
  expect(refused?.body).toMatchObject({
    code: 'GAS_BUDGET_EXHAUSTED',
    details: { budget: 'contractReverts', leftGas: expect.any(Number) },
  })
  expect(Number(refused?.headers.get('Retry-After'))).toBeGreaterThan(0)

  vi.restoreAllMocks()
  const paid = await register(await registrationOf(newAccount()), payingAs(await fundedPayer()))
  expect(paid.status).toBe(201)
})

test('a relayer that is paused names its own code and when it resumes, and the same payment is taken then', async () => {
  const lane = env.EXECUTOR_LANE.getByName(relayer.address)
  const setForeignUse = async (times: number[]) => {
    const uses = times.map((at, nonce) => ({ at, nonce }))
    await runInDurableObject(lane, (_, { storage }) =>
      storage.sql.exec(`INSERT OR REPLACE INTO lane VALUES ('foreign', ?)`, JSON.stringify(uses)).toArray(),
    )
    await evictDurableObject(lane)
  }
  const body = await registrationOf(newAccount())
  const payment = await paymentOf(await fundedPayer())
  await setForeignUse([Date.now() - 300_000, Date.now()])
  const refused = await register(body, carrying(payment))
  expect(refused).toMatchObject({ status: 503, body: { code: 'EXECUTOR_PAUSED', retryable: true } })
  const wait = Number(refused.headers.get('Retry-After'))
  expect(wait).toBeGreaterThan(200)
  expect(wait).toBeLessThanOrEqual(300)
  await setForeignUse([])
  expect(await register(body, carrying(payment))).toMatchObject({ status: 201 })
})
