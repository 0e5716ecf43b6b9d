import { z } from 'zod'
import { exitRule } from './exit-rule.ts'
import { addressOut } from './primitives.ts'
import { typedData } from './typed-data.ts'

const hex32 = (description: string) =>
  z
    .string()
    .regex(/^0x[0-9a-f]{64}$/)
    .meta({ description, example: `0x${'5f'.repeat(32)}` })

export const signingVectors = z
  .object({
    privateKey: hex32('A public test key: never send funds to it'),
    signer: addressOut,
    vectors: z.array(
      z
        .object({
          primaryType: z.string(),
          typedData,
          exits: z.array(exitRule).optional().meta({ description: 'The rules behind exitsHash' }),
          digest: hex32('The signed digest'),
          signature: z
            .string()
            .regex(/^0x[0-9a-f]{130}$/)
            .meta({ description: "The test key's signature of the digest: r, s, v" }),
        })
        .meta({ id: 'SigningVector' }),
    ),
  })
  .meta({ id: 'SigningVectors' })
