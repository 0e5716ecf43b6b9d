import { type Address, type Hex, numberToHex, toFunctionSelector } from 'viem'
import type { Devnet } from '../../devnet/index.ts'

/** Positions above `real` are copies of `originals` positions from the id `first` on. */
type Copies = { real: number; first: number; originals: number; total: number }

/** The address to which the position manager's code moves while it serves copies. */
const IMPLEMENTATION: Address = '0x00000000000000000000000000000000000c0de5'

/**
 * Makes the chain's position manager serve `total` positions: those above the `real` ones are copies of the `originals`
 * from `first` on, in rotation. Its code moves to another address, and a small contract in its place delegates every
 * call, replacing a copy's id with that of its original. So the node executes the real contract for each copy that is
 * read. Only real positions can be traded.
 */
export async function answerForCopies({ client, deployment }: Devnet, copies: Copies): Promise<void> {
  const manager = deployment.contracts.PositionManager as Address
  const code = await client.getCode({ address: manager })
  if (code === undefined) throw new Error('The position manager has no code.')
  const setCode = (address: Address, code: Hex) =>
    client.request<{ Method: string; Parameters: unknown[]; ReturnType: unknown }>({
      method: 'anvil_setCode',
      params: [address, code],
    })
  const moved = await client.getCode({ address: IMPLEMENTATION })
  if (moved === undefined) await setCode(IMPLEMENTATION, code)
  await setCode(manager, copyingCode(copies))
}

/** Returns EVM code; the comments show the stack after each line, its top at the right. */
function copyingCode({ real, first, originals, total }: Copies): Hex {
  const push4 = (value: number | Hex) =>
    `63${(typeof value === 'number' ? numberToHex(value, { size: 4 }) : value).slice(2)}`
  const parts: (string | { jumpTo: string } | { label: string })[] = [
    '363d3d37', // memory: the calldata
    '3d3560e01c', // selector
    `80${push4(toFunctionSelector('positionCount()'))}14`, // selector, isCount
    { jumpTo: 'count' },
    '57', // selector
    '600435', // selector, id
    `80${push4(real)}10`, // selector, id, real < id
    `81${push4(total)}1015`, // selector, id, real < id, id <= total
    '1615', // selector, id, isNoCopy
    { jumpTo: 'call' },
    '57', // selector, id
    push4(originals), // selector, id, originals
    '6001820306', // selector, id, (id - 1) % originals
    `${push4(first)}01600452`, // selector, id; memory: the calldata with the original's id
    { label: 'call' },
    `3d3d363d73${IMPLEMENTATION.slice(2)}5af4`, // selector, id, success
    '3d600060003e', // memory: the return data
    { jumpTo: 'returned' },
    '57',
    '3d6000fd',
    { label: 'returned' },
    `81${push4(toFunctionSelector('getPosition(uint256)'))}1415`, // selector, id, isOther
    { jumpTo: 'end' },
    '57',
    '80600052', // memory: the return data, which starts with the id
    { label: 'end' },
    '3d6000f3',
    { label: 'count' },
    `${push4(total)}60005260206000f3`,
  ]
  const places = new Map<string, number>()
  let length = 0
  for (const part of parts) {
    if (typeof part === 'object' && 'label' in part) places.set(part.label, length)
    length += typeof part === 'string' ? part.length / 2 : 'label' in part ? 1 : 3
  }
  const bytes = parts.map(part => {
    if (typeof part === 'string') return part
    if ('label' in part) return '5b'
    return `61${numberToHex(places.get(part.jumpTo) ?? 0, { size: 2 }).slice(2)}`
  })
  return `0x${bytes.join('')}`
}
