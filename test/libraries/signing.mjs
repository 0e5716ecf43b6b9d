// Signs the typed data of a file with a key, by ethers, and prints the signatures.
import { readFileSync } from 'node:fs'
import { Wallet } from 'ethers'

const [, , file, key] = process.argv
for (const typedData of JSON.parse(readFileSync(file, 'utf8'))) {
  const { EIP712Domain: _, ...types } = typedData.types // ethers derives it from the domain, and refuses a second type without a use
  console.log(await new Wallet(key).signTypedData(typedData.domain, types, typedData.message))
}
