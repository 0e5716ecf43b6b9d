import type { AddressInfo } from 'node:net'
import type { Hex } from 'viem'
import { createPeer } from './relay.ts'

// Serves the baseline relay on PORT with the variables of the service, and reports its URL.
const { PORT = '0', RPC_URL = '', CHAIN_ID, CONTRACTS = '{}', TOKENS = '{}', ...env } = process.env
const peer = createPeer({
  rpcUrl: RPC_URL.split(',')[0] ?? '',
  chainId: Number(CHAIN_ID),
  contracts: JSON.parse(CONTRACTS),
  tokens: JSON.parse(TOKENS),
  executorKey: env.EXECUTOR_PRIVATE_KEY?.split(',')[0] as Hex,
  relayerKey: env.RELAYER_PRIVATE_KEY as Hex,
})
const server = peer.listen(Number(PORT), '127.0.0.1', () => {
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
})
process.on('disconnect', () => process.exit())
