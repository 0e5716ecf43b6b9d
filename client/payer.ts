import { x402Client, x402HTTPClient } from '@x402/core/client'
import type { PaymentRequired } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import type { Address, PrivateKeyAccount } from 'viem'

type Fetch = (request: Request) => Promise<Response>

export type Payer = {
  /** Signs the payment that a 402 response requires and returns the header that carries it. */
  sign(required: PaymentRequired): Promise<Record<string, string>>
  /** Sends the request; if the response is 402, pays and sends it again with the payment. */
  fetch: Fetch
}

/** Returns a wallet that pays over x402 with the protocol's own client and only in the given asset. */
export function payerOf(
  account: PrivateKeyAccount,
  { network, asset }: { network: `eip155:${number}`; asset: Address },
  send: Fetch = request => fetch(request),
): Payer {
  const client = new x402HTTPClient(
    x402Client.fromConfig({
      schemes: [{ network, client: new ExactEvmScheme(account) }],
      // The client pays only in well-known assets of well-known chains unless another asset is allowed here.
      spendControls: { allowedAssets: [{ network, asset, maxAmountPerPayment: '5000000' }] },
    }),
  )
  const sign = async (required: PaymentRequired) =>
    client.encodePaymentSignatureHeader(await client.createPaymentPayload(required))
  return {
    sign,
    async fetch(request) {
      const again = request.clone()
      const response = await send(request)
      if (response.status !== 402) return response
      const required = client.getPaymentRequiredResponse(name => response.headers.get(name), await response.json())
      const headers = new Headers(again.headers)
      for (const [name, value] of Object.entries(await sign(required))) headers.set(name, value)
      return send(new Request(again, { headers }))
    },
  }
}
