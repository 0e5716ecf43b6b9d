import { type Hex, pad } from 'viem'

/** The block and the address of what these nodes return. */
export const [BLOCK_HASH, ADDRESS] = [pad('0xab'), pad('0x11', { size: 20 })]

/** Returns the receipt of a transaction in block 7, as a node does. */
export const nodeReceipt = (transactionHash: Hex, logs: object[] = []) => ({
  transactionHash,
  from: ADDRESS,
  to: ADDRESS,
  blockNumber: '0x7',
  blockHash: BLOCK_HASH,
  status: '0x1',
  gasUsed: '0x5208',
  logs,
})
