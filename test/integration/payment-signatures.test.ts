import type { Hex } from 'viem'
import { describe, expect, test } from 'vitest'
import { registrationOf } from '../support/actors.ts'
import { fundedPayer } from '../support/fee-ledger.ts'
import { carrying, newAccount, paymentOf, register, useFeeLedger } from '../support/paid-registration.ts'
import { spellings, wrap } from '../support/signature-spellings.ts'

// HTTP only: payments are sent in HTTP headers.

const ledger = useFeeLedger()

type Payment = Awaited<ReturnType<typeof paymentOf>>
const withSignature = (payment: Payment, spell: (signature: Hex) => Hex): Payment => ({
  ...payment,
  payload: { ...payment.payload, signature: spell(payment.payload.signature) },
})

describe("a payment's signature", () => {
  test.each(Object.entries(spellings))("a payment's signature is accepted in another form: %s", async (_, spell) => {
    const payment = withSignature(await paymentOf(await fundedPayer()), spell)
    const registered = await register(await registrationOf(newAccount()), carrying(payment))
    expect(registered).toMatchObject({ status: 201, body: { agentId: expect.any(String) } })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test.each([
    ['otherDomainName', { extra: { name: 'USDC', version: '2' } }, 'extra says "USD Coin"'],
    ['otherDomainVersion', { extra: { name: 'USD Coin', version: '1' } }, 'version "1"'],
  ])("a payment's signature is refused with its mistake: %s", async (mistake, changes, text) => {
    const payment = await paymentOf(await fundedPayer(), changes)
    const refused = await register(await registrationOf(newAccount()), carrying(payment))
    expect(refused).toMatchObject({ status: 402, body: { code: 'PAYMENT_REFUSED', details: { mistake } } })
    expect(refused.body.error).toContain(text)
    await ledger.expect({ payments: 0, registrations: 0 })
  })

  test("a payment's signature of a smart account without code is refused as not deployed", async () => {
    const payment = withSignature(await paymentOf(await fundedPayer()), signature => wrap(`${signature}00` as Hex))
    const refused = await register(await registrationOf(newAccount()), carrying(payment))
    expect(refused).toMatchObject({
      status: 402,
      body: {
        code: 'PAYMENT_REFUSED',
        details: { mistake: 'accountNotDeployed' },
        remedy: expect.stringContaining('Deploy the account'),
      },
    })
    await ledger.expect({ payments: 0, registrations: 0 })
  })
})
