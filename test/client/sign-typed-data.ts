import { text } from 'node:stream/consumers'
import { privateKeyToAccount } from 'viem/accounts'

// Reads `{ key, typedData? }` or a quote from standard input. With a key it prints the address and the signature as JSON;
// without one it prints the signature by AGENT_KEY, as the command of a wallet would.
const { key, typedData } = JSON.parse(await text(process.stdin))
const account = privateKeyToAccount(key ?? process.env.AGENT_KEY)
const signature = typedData && (await account.signTypedData(withoutDomainType(typedData)))
console.log(key === undefined ? signature : JSON.stringify({ address: account.address, signature }))

function withoutDomainType({ types: { EIP712Domain: _, ...types }, ...rest }: typeof typedData) {
  return { ...rest, types }
}
