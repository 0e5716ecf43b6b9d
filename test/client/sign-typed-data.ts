import { text } from 'node:stream/consumers'
import { privateKeyToAccount } from 'viem/accounts'

// Reads `{ key, typedData? }` from standard input and prints the key's address and its signature as JSON. Given a quote
// instead, it prints the body to post, signed by AGENT_KEY.
const { key, typedData, body } = JSON.parse(await text(process.stdin))
const account = privateKeyToAccount(key ?? process.env.AGENT_KEY)
const signature = typedData && (await account.signTypedData(withoutDomainType(typedData)))
console.log(JSON.stringify(body === undefined ? { address: account.address, signature } : { ...body, signature }))

function withoutDomainType({ types: { EIP712Domain: _, ...types }, ...rest }: typeof typedData) {
  return { ...rest, types }
}
