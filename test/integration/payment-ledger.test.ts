import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { toEventSelector } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { chain as devnet, FRONTIER, registrationOf } from '../support/actors.ts'
import { fundedPayer } from '../support/fee-ledger.ts'
import {
  app,
  carrying,
  decode,
  hosted,
  ledgerObject,
  newAccount,
  payingAs,
  paymentOf,
  register,
  setFacilitator,
  useFeeLedger,
} from '../support/paid-registration.ts'
import { deployment } from '../support/surfaces.ts'

// HTTP only: payments are sent in HTTP headers; mcp-clients.node.test.ts pays over MCP.

const { accounts } = deployment
const ledger = useFeeLedger()

describe('each registration is paid for exactly once', () => {
  test('each registration is paid for exactly once when the same body is posted again with its payment, without one, or with a new one', async () => {
    const payer = await fundedPayer()
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(payer)
    const { body: first, headers } = await register(body, carrying(payment))
    for (const fetch of [carrying(payment), app, payingAs(payer), carrying(await paymentOf(payer))]) {
      const again = await register(body, fetch)
      expect(again).toMatchObject({ status: 200, body: first })
      expect(again.headers.get('PAYMENT-RESPONSE')).toBe(headers.get('PAYMENT-RESPONSE'))
    }
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('each registration is paid for exactly once when a payment is posted several times at once', async () => {
    const body = await registrationOf(newAccount())
    const payment = await paymentOf(await fundedPayer())
    const answers = await Promise.all([1, 2, 3, 4].map(() => register(body, carrying(payment))))
    expect(new Set(answers.map(({ body }) => body.agentId)).size).toBe(1)
    for (const { status } of answers) expect([200, 201]).toContain(status)
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('each registration is paid for exactly once when several payments come for one body at once', async () => {
    const payer = await fundedPayer()
    const body = await registrationOf(newAccount())
    const payments = await Promise.all([1, 2, 3].map(() => paymentOf(payer)))
    const answers = await Promise.all(payments.map(payment => register(body, carrying(payment, hosted))))
    expect(new Set(answers.map(({ body }) => body.agentId)).size).toBe(1)
    expect(await setFacilitator()).toEqual({ verify: 1, settle: 1 })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test.each([
    ['the Worker', app],
    ['a hosted facilitator', hosted],
  ])(
    'each registration is paid for exactly once when one payment comes for two agents at once, settled by %s',
    async (_, fetch) => {
      const payment = await paymentOf(await fundedPayer())
      const bodies = [await registrationOf(newAccount()), await registrationOf(newAccount())]
      const answers = await Promise.all(bodies.map(body => register(body, carrying(payment, fetch))))
      const codes = answers.map(({ status, body }) => (status === 201 ? 'registered' : body.code))
      expect(codes.sort()).toEqual(['PAYMENT_ALREADY_USED', 'registered'])
      await ledger.expect({ payments: 1, registrations: 1 })
    },
  )

  test('each registration is paid for exactly once when a payment that registered one agent comes for another one', async () => {
    const agent = newAccount()
    const payment = await paymentOf(await fundedPayer())
    expect((await register(await registrationOf(agent), carrying(payment))).status).toBe(201)
    for (const other of [newAccount(), agent]) {
      const body = await registrationOf(other, { name: 'another' })
      expect(await register(body, carrying(payment))).toMatchObject({
        status: 402,
        body: { code: 'PAYMENT_ALREADY_USED', accepts: [{ amount: `${ledger.fee}` }] },
      })
    }
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  test('each registration is paid for exactly once when one signer registers twice', async () => {
    const agent = newAccount()
    const payer = await fundedPayer()
    expect((await register(await registrationOf(agent), payingAs(payer))).status).toBe(201)
    expect((await register(await registrationOf(agent), payingAs(payer))).status).toBe(201)
    await ledger.expect({ payments: 2, registrations: 2 })
  })

  test('each registration is paid for exactly once when the lane has forgotten the registration that spent the payment', async () => {
    const agent = newAccount()
    expect((await register(await registrationOf(agent), payingAs(await fundedPayer()))).status).toBe(201)
    await runInDurableObject(ledgerObject(), (_, { storage }) => {
      storage.sql.exec(`UPDATE payment SET state = 'settled', held_since = 0 WHERE signer = ?`, agent.address)
    })
    const lane = env.EXECUTOR_LANE.get(env.EXECUTOR_LANE.idFromName(accounts.relayer.address))
    await runInDurableObject(lane, (_, { storage }) => {
      storage.sql.exec('DELETE FROM intent WHERE "group" = ?', `signer:${agent.address}`)
    })
    const another = await registrationOf(agent, { name: 'another' })
    expect(await register(another, app)).toMatchObject({ status: 402, body: { code: 'PAYMENT_REQUIRED' } })
    await ledger.expect({ payments: 1, registrations: 1 })
  })

  describe('when a registration fails after its payment was settled', () => {
    /** Pauses the registry between the settlement and the relay. */
    const pauseOnceSettled = () => {
      const { fetch } = globalThis
      vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
        const response = await fetch(input, init)
        if (`${input instanceof Request ? input.url : input}`.endsWith('/settle')) await devnet.pauseRegistry(true)
        return response
      })
    }
    const failed = async (agent: PrivateKeyAccount) => {
      const body = await registrationOf(agent)
      pauseOnceSettled()
      try {
        const answer = await register(body, payingAs(await fundedPayer(), hosted))
        expect(answer).toMatchObject({ status: 503 })
        expect(decode(answer.headers.get('PAYMENT-RESPONSE'))).toMatchObject({ success: true })
      } finally {
        vi.restoreAllMocks()
        await devnet.pauseRegistry(false)
      }
      await ledger.expect({ payments: 1, registrations: 0 })
      return body
    }

    test('each registration is paid for exactly once when a registration fails after its payment was settled the same body registers without another payment', async () => {
      const body = await failed(newAccount())
      const answer = await register(body, hosted)
      expect(answer.status).toBe(201)
      expect(decode(answer.headers.get('PAYMENT-RESPONSE'))).toMatchObject({ success: true })
      await ledger.expect({ payments: 1, registrations: 1 })
    })

    test('each registration is paid for exactly once when a registration fails after its payment was settled another body of the same signer registers without a payment, once', async () => {
      const agent = newAccount()
      const first = await failed(agent)
      await abortAllDurableObjects()
      expect(await register(await registrationOf(newAccount()), app)).toMatchObject({ status: 402 })
      expect((await register(await registrationOf(agent, { vault: FRONTIER }), app)).status).toBe(201)
      expect((await register(first, app)).status).toBe(400)
      expect(await register(await registrationOf(agent), app)).toMatchObject({
        status: 402,
        body: { code: 'PAYMENT_REQUIRED' },
      })
      await ledger.expect({ payments: 1, registrations: 1 })
    })

    test('each registration is paid for exactly once when a registration fails after its payment was settled two bodies cannot use the payment at once', async () => {
      const agent = newAccount()
      await failed(agent)
      const bodies = [await registrationOf(agent, { name: 'one' }), await registrationOf(agent, { name: 'two' })]
      const answers = await Promise.all(bodies.map(body => register(body, app)))
      const codes = answers.map(({ status, body }) => (status === 201 ? 'registered' : body.code))
      expect(codes.sort()).toEqual(['REGISTRATION_IN_FLIGHT', 'registered'])
      await ledger.expect({ payments: 1, registrations: 1 })
    })
  })
})

const AUTHORIZATION_USED = toEventSelector('AuthorizationUsed(address,bytes32)')

/** Adds refused payments of a signer to the ledger. Times are seconds before now. */
const addRefused = (signer: string, payments: { nonce: string; expiredAgo: number; refusedAgo: number }[]) =>
  runInDurableObject(ledgerObject(), (_, { storage }) => {
    const now = Math.floor(Date.now() / 1000)
    for (const { nonce, expiredAgo, refusedAgo } of payments)
      storage.sql.exec(
        `INSERT INTO payment VALUES ('0x01', ?, 'refused', ?, NULL, '0', 0, ?, '{}', '{}', '0', '0', NULL, ?)`,
        nonce,
        signer,
        `${now - expiredAgo}`,
        1_000 * (now - refusedAgo),
      )
  })
const rowsOf = (signer: string) =>
  runInDurableObject(ledgerObject(), (_, { storage }) =>
    storage.sql.exec('SELECT nonce, state, payload FROM payment WHERE signer = ? ORDER BY nonce', signer).toArray(),
  )

describe('the ledger', () => {
  const HOUR = 3_600

  test('the ledger deletes refused payments an hour after their authorization ended, and no others', async () => {
    const stranger = newAccount().address
    await addRefused(stranger, [
      { nonce: 'ended', expiredAgo: HOUR + 600, refusedAgo: 2 * HOUR },
      { nonce: 'ended a moment ago', expiredAgo: HOUR + 30, refusedAgo: 2 * HOUR },
      { nonce: 'refused a moment ago', expiredAgo: 2 * HOUR, refusedAgo: HOUR - 30 },
      { nonce: 'valid', expiredAgo: -30, refusedAgo: 3 * HOUR },
    ])
    expect((await register(await registrationOf(newAccount()), payingAs(await fundedPayer()))).status).toBe(201)
    const left = await rowsOf(stranger)
    expect(left.map(({ nonce }) => nonce)).toEqual(['ended a moment ago', 'refused a moment ago', 'valid'])
  })

  test('the ledger deletes a bounded number of payments with each new one', async () => {
    const stranger = newAccount().address
    const payments = Array.from({ length: 60 }, (_, n) => ({
      nonce: `${n}`,
      expiredAgo: 3 * HOUR,
      refusedAgo: 3 * HOUR,
    }))
    await addRefused(stranger, payments)
    const left = []
    for (let count = 0; count < 2; count++) {
      expect((await register(await registrationOf(newAccount()), payingAs(await fundedPayer()))).status).toBe(201)
      left.push((await rowsOf(stranger)).length)
    }
    expect(left).toEqual([10, 0])
  })

  test('the ledger keeps the payload of a payment only until it is settled or refused', async () => {
    const agent = newAccount()
    expect((await register(await registrationOf(agent), payingAs(await fundedPayer()))).status).toBe(201)
    await setFacilitator({ settle: 'refuse' })
    onTestFinished(() => setFacilitator().then(() => {}))
    expect((await register(await registrationOf(agent), payingAs(await fundedPayer(), hosted))).status).toBe(402)
    const rows = await rowsOf(agent.address)
    expect(rows.map(({ state }) => state).sort()).toEqual(['refused', 'spent'])
    expect(rows.map(({ payload }) => payload)).toEqual(['', ''])
  })

  describe('resolves a payment whose signer does not come back', () => {
    const usdc = { address: deployment.contracts.USDC, abi: usdcTokenAbi } as const
    const stateOf = async ({ address }: PrivateKeyAccount) => (await rowsOf(address)).map(({ state }) => state)
    const payForAnother = async () =>
      expect((await register(await registrationOf(newAccount()), payingAs(await fundedPayer()))).status).toBe(201)

    /** Posts a registration whose payment is not settled by the facilitator. */
    async function leave(agent: PrivateKeyAccount) {
      await setFacilitator({ settle: 'pend' })
      const payer = await fundedPayer()
      const payment = await paymentOf(payer)
      expect((await register(await registrationOf(agent), carrying(payment, hosted))).status).toBe(502)
      await setFacilitator()
      return { payer, ...payment.payload }
    }
    /** Settles a payment on the chain. */
    const settle = async ({
      authorization: { from, to, value, ...rest },
      signature,
    }: Awaited<ReturnType<typeof leave>>) =>
      devnet.send(accounts.payer, {
        ...usdc,
        functionName: 'transferWithAuthorization',
        args: [from, to, BigInt(value), BigInt(rest.validAfter), BigInt(rest.validBefore), rest.nonce, signature],
      } as const)
    async function cancel({ payer, authorization: { nonce } }: Awaited<ReturnType<typeof leave>>) {
      const signature = await payer.signTypedData({
        domain: { name: 'USD Coin', version: '2', chainId: deployment.chainId, verifyingContract: usdc.address },
        types: {
          CancelAuthorization: [
            { name: 'authorizer', type: 'address' },
            { name: 'nonce', type: 'bytes32' },
          ],
        },
        primaryType: 'CancelAuthorization',
        message: { authorizer: payer.address, nonce },
      })
      await devnet.send(accounts.payer, {
        ...usdc,
        functionName: 'cancelAuthorization',
        args: [payer.address, nonce, signature],
      } as const)
    }
    /** Makes it two hours later for the payments of agents, a second less for each next one. */
    const age = (...agents: PrivateKeyAccount[]) =>
      runInDurableObject(ledgerObject(), (_, { storage }) => {
        const then = Math.floor(Date.now() / 1000) - 2 * HOUR
        for (const [index, { address }] of agents.entries())
          storage.sql.exec(
            'UPDATE payment SET valid_before = ?1, updated_at = ?2, held_since = ?2 WHERE signer = ?3',
            `${then}`,
            1_000 * (then + index),
            address,
          )
      })

    test('the ledger resolves a payment whose signer does not come back by what the chain shows, two with each new payment', async () => {
      const [unused, paid, cancelled] = [newAccount(), newAccount(), newAccount()]
      await leave(unused)
      await settle(await leave(paid))
      await cancel(await leave(cancelled))
      await age(unused, paid, cancelled)
      const states = async () => (await Promise.all([unused, paid, cancelled].map(stateOf))).flat()
      await payForAnother()
      await expect.poll(states, { timeout: 30_000 }).toEqual(['refused', 'settled', 'settling'])
      await payForAnother()
      await expect.poll(states, { timeout: 30_000 }).toEqual(['refused', 'settled', 'refused'])
      expect((await register(await registrationOf(paid), hosted)).status).toBe(201)
      await ledger.expect({ payments: 3, registrations: 3 })
    })

    test('the ledger resolves a payment whose signer does not come back but not while its authorization may be valid, nor when a node lacks its logs', async () => {
      const [recent, paid] = [newAccount(), newAccount()]
      await leave(recent)
      await settle(await leave(paid))
      await age(paid)
      const { fetch } = globalThis
      let withheld = 0
      vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
        const sent = `${init?.body}`
        if (!sent.includes('eth_getLogs') || !sent.includes(AUTHORIZATION_USED)) return fetch(input, init)
        withheld++
        const withoutLogs = (response: { result: unknown }) =>
          Array.isArray(response.result) ? { ...response, result: [] } : response
        const responses = await (await fetch(input, init)).json<{ result: unknown } | { result: unknown }[]>()
        return Response.json(Array.isArray(responses) ? responses.map(withoutLogs) : withoutLogs(responses))
      })
      await payForAnother()
      await vi.waitFor(() => expect(withheld).toBeGreaterThan(0), 120_000)
      vi.restoreAllMocks()
      await age(paid)
      await payForAnother()
      await expect.poll(() => stateOf(paid), { timeout: 30_000 }).toEqual(['settled'])
      expect(await stateOf(recent)).toEqual(['settling'])
    })
  })
})
