import { BaseError, type Transport } from 'viem'

const ATTEMPTS = 3

/**
 * A transport that asks again when a node without history says that the newest block is out of range: anvil under
 * `--prune-history` turns `latest` into a number first, and a block mined at that moment takes its state away.
 */
export const steady = <transport extends Transport>(inner: transport): transport =>
  (options => {
    const { request, ...rest } = inner(options)
    const ask: typeof request = async (args, overrides) => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await request(args as never, overrides)
        } catch (error) {
          if (attempt === ATTEMPTS || !isOfLatest(args) || !isOutOfRange(error)) throw error
        }
      }
    }
    return { ...rest, request: ask }
  }) as transport

const isOfLatest = ({ params }: { params?: unknown }) => Array.isArray(params) && params[1] === 'latest'

const isOutOfRange = (error: unknown) => error instanceof BaseError && error.details?.includes('BlockOutOfRange')
