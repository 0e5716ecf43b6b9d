import { type Address, encodeDeployData, type PublicActions, type TestClient } from 'viem'
import { rebasingTokenAbi } from '../../contracts-abi/rebasing-token.ts'
import { bytecodeOf } from '../../devnet/bytecode.ts'

type Node = Pick<TestClient<'anvil'>, 'setCode'> & Pick<PublicActions, 'call' | 'getCode'>

/** Makes a token a rebasing one, with the balances that it has as shares. Returns what takes that back. */
export async function makeRebasing(node: Node, token: Address): Promise<() => Promise<void>> {
  const before = (await node.getCode({ address: token })) ?? '0x'
  const { data: code = '0x' } = await node.call({
    data: encodeDeployData({
      abi: rebasingTokenAbi,
      bytecode: bytecodeOf('RebasingToken'),
      args: ['Rebasing', 'RBS'],
    }),
  })
  await node.setCode({ address: token, bytecode: code })
  return () => node.setCode({ address: token, bytecode: before })
}
