// What a program does that installed the package: it registers for a fee, opens, changes and closes a position.
import { createClient, UntrustedQuoteError } from '@agent-trading-service/client'
import { createPayer } from '@agent-trading-service/client/pay'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

export async function trade({ baseUrl, rpcUrl, chainId, usdc, payerKey }) {
  const account = privateKeyToAccount(generatePrivateKey())
  const client = createClient({ baseUrl, rpcUrl, account, pins: { chainId } })
  const payer = createPayer({ account: privateKeyToAccount(payerKey), chainId, asset: usdc, maxAmount: 1_000_000n })
  const registration = { vault: 'genesis', name: 'packed', metadataURI: 'https://agents.example/packed.json' }
  const { agentId } = await client.register({ ...registration, payer })
  const agent = client.agent(agentId)
  const exits = [{ triggerBps: -800, exitBps: 10_000 }]
  const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '50', exits })
  await agent.setLadder({ positionId, exits: [{ triggerBps: -500, exitBps: 10_000 }] })
  const { transactionHash } = await agent.close({ positionId })
  const { status } = await client.getTransaction({ txHash: transactionHash })
  const wrong = createClient({ baseUrl, account, pins: { chainId: chainId + 1 } })
  const refused = await wrong
    .agent(agentId)
    .open({ symbol: 'NVDA', usdcAmount: '50', exits })
    .catch(error => error)
  return { status, refused: refused instanceof UntrustedQuoteError }
}
