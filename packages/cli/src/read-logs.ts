import type { AbiEvent, Address, GetLogsReturnType, PublicClient } from 'viem'

const MAX_BLOCKS_PER_REQUEST = 10_000n

/**
 * Reads the logs of contracts in an inclusive range of blocks, oldest first, in pieces that the node accepts; with
 * `events`, only theirs.
 */
export async function readLogs(
  client: PublicClient,
  address: Address[],
  [from, to]: readonly [bigint, bigint],
  events?: readonly AbiEvent[],
): Promise<GetLogsReturnType> {
  const logs: GetLogsReturnType = []
  let blocks = MAX_BLOCKS_PER_REQUEST
  for (let fromBlock = from; fromBlock <= to; ) {
    const toBlock = fromBlock + blocks - 1n < to ? fromBlock + blocks - 1n : to
    try {
      logs.push(...(await client.getLogs({ address, events, fromBlock, toBlock })))
      fromBlock = toBlock + 1n
    } catch (error) {
      if (blocks === 1n) throw error
      blocks /= 2n
    }
  }
  return logs
}
