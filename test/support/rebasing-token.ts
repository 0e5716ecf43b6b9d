import { type Address, concatHex, type Hex, type TestClient, toFunctionSelector } from 'viem'

type Node = Pick<TestClient<'anvil'>, 'setCode'> & {
  getCode: (of: { address: Address }) => Promise<Hex | undefined>
}

/** Where the code of a token is kept while its own address answers for a rebasing one. */
const BEFORE: Address = '0x00000000000000000000000000000000000c0de1'

/** Makes a token also answer `rebasingCreditsPerToken()`, with 1. Returns what takes that back. */
export async function makeRebasing(node: Node, token: Address): Promise<() => Promise<void>> {
  const bytecode = (await node.getCode({ address: token })) ?? '0x'
  await node.setCode({ address: BEFORE, bytecode })
  await node.setCode({ address: token, bytecode: rebasingOver(BEFORE) })
  return () => node.setCode({ address: token, bytecode })
}

/** Returns 1 for that function, and calls `implementation` on its own storage for all others. */
const rebasingOver = (implementation: Address): Hex =>
  concatHex([
    '0x60003560e01c63',
    toFunctionSelector('function rebasingCreditsPerToken()'),
    '0x1460455736600060003760006000366000',
    concatHex(['0x73', implementation, '0x5af4']),
    '0x3d600060003e6040573d6000fd5b3d6000f35b600160005260206000f3',
  ])
