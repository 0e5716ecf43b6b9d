import { getAddress, isAddress } from 'viem'
import { z } from 'zod'

// Inputs parse: digits in, bigint out. Outputs describe.

const UINT256_END = 1n << 256n

/** A uint256 as a digit string; bigint inside. */
export const uint = z
  .string()
  .regex(/^[0-9]+$/, 'must be a string of decimal digits')
  .max(78, 'must be below 2^256')
  .transform(BigInt)
  .refine(value => value < UINT256_END, 'must be below 2^256')

const id = z
  .string()
  .regex(/^[1-9][0-9]*$/, 'must be a string of decimal digits without a leading zero')
  .max(78, 'must be below 2^256')
  .transform(BigInt)
  .refine(value => value < UINT256_END, 'must be below 2^256')

export const agentId = id.meta({ description: 'Agent id', example: '1' })
export const positionId = uint.meta({ description: 'Position id', example: '1' })

export const erc8004AgentId = uint.meta({ description: 'Token id of the ERC-8004 identity', example: '7' })

/** An address in any case, answered checksummed; a wrong EIP-55 checksum in mixed case is refused. */
export const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be 0x and 40 hex characters')
  .refine(
    value => isAddress(value, { strict: false }) && (isUniform(value) || isAddress(value)),
    'has a wrong EIP-55 checksum: check it for a typing error or send it in lower case',
  )
  .transform(value => getAddress(value))

const isUniform = (value: string) => {
  const digits = value.slice(2)
  return digits === digits.toLowerCase() || digits === digits.toUpperCase()
}

export const txHash = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hex characters')
  .transform(value => value.toLowerCase() as `0x${string}`)

export const signature = z
  .string()
  .regex(/^0x([0-9a-fA-F]{2})+$/, 'must be 0x and an even number of hex characters')
  .max(8194, 'must be at most 4096 bytes')
  .transform(value => value as `0x${string}`)
  .meta({ description: 'EIP-712: r, s, v (65 bytes), or of an ERC-1271 account' })

/** A human USDC amount such as `250` or `0.5`; kept as a string, since only the asset knows its decimals. */
export const decimal = z
  .string()
  .max(100, 'must be at most 100 characters')
  .regex(/^[0-9]+(\.[0-9]+)?$/, 'must be a decimal number such as 250 or 0.5')

export const deadline = uint.meta({
  description: 'Executable until then; Unix seconds',
  example: '1790000000',
})
export const nonce = uint.meta({ description: 'Nonce from the quote', example: '0' })

// ---

/** Base units of an asset as a digit string; may be negative. */
export const amount = (description: string) =>
  z
    .string()
    .regex(/^-?[0-9]+$/)
    .meta({ description, example: '250000000' })
export const usdc = (description: string) => amount(`${description}; USDC base units (6 decimals)`)
export const bps = (description: string) => z.int().meta({ description: `${description}; basis points, 10000 = 100 %` })
export const digits = (description: string) =>
  z
    .string()
    .regex(/^[0-9]+$/)
    .meta({ description })
export const unixSeconds = (description: string) => digits(`${description}; Unix seconds`)
export const addressOut = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .meta({ description: 'Checksummed address', example: '0x5FbDB2315678afecb367f032d93F642f64180aa3' })
export const hashOut = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/)
  .meta({ description: 'Transaction hash' })

export const asOf = z
  .object({
    blockNumber: digits('Block that every value of this answer was read at'),
    blockTimestamp: unixSeconds('Time of that block'),
  })
  .meta({ id: 'AsOf', description: 'The one block that the answer describes' })

/** How far an answer from the history is behind the chain. */
export const lagBlocks = z.int().meta({
  description: 'Blocks after asOf that are not looked at yet; 0 unless the index is far behind',
})
export const nextCursor = z.string().nullable().meta({ description: 'Where the next page begins; null at the end' })
