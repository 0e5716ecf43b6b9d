import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { expect, it } from 'vitest'
import { clientOf, LADDER, newAccount, newAgent } from './support.ts'

it('a receiver gets signed events of its agent over HTTP, and after a rotation with a second signature', async () => {
  const received: { id: string; text: string; headers: Record<string, string> }[] = []
  let notifyReceived = () => {}
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    const headers = request.headers as Record<string, string>
    // The first attempt of some events fails.
    const isRepeated = received.some(({ id }) => id === headers['webhook-id'])
    response.writeHead(received.length % 4 === 1 && !isRepeated ? 500 : 204).end()
    received.push({ id: `${headers['webhook-id']}`, text, headers })
    notifyReceived()
  })
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
  const until = async (isDone: () => boolean) => {
    while (!isDone())
      await new Promise<void>(resolve => {
        notifyReceived = resolve
      })
  }
  try {
    const account = newAccount()
    const agentId = await newAgent(account)
    const agent = clientOf(account).agent(agentId)
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`
    const { webhook, secret } = await agent.webhooks.create({ url, eventTypes: ['trade', 'ladder'] })
    const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '100', exits: LADDER })
    await agent.setLadder({ positionId, exits: [{ triggerBps: -500, exitBps: 10_000 }] })
    await until(() => received.some(({ text }) => JSON.parse(text).type === 'ladder'))
    for (const { text, headers } of received) new Webhook(secret).verify(text, headers)

    const rotated = await agent.webhooks.rotateSecret(webhook.webhookId)
    expect((await agent.webhooks.test(webhook.webhookId)).lastTest).toMatchObject({ at: expect.any(String) })
    const { text, headers } = received.find(({ id }) => id.startsWith('test-')) ?? expect.unreachable()
    expect(JSON.parse(text)).toMatchObject({ type: 'test', data: { agentId } })
    for (const known of [secret, rotated.secret]) new Webhook(known).verify(text, headers)
    await agent.webhooks.delete(webhook.webhookId)
    expect(await agent.webhooks.list()).toEqual([])
  } finally {
    await new Promise(resolve => server.close(resolve))
  }
})
