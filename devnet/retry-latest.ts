import { BaseError, type Transport } from 'viem'

const MAX_ATTEMPTS = 3

/**
 * Wraps a viem transport so that it sends a request again when the node lost the newest block while it read it: anvil
 * with `--prune-history` resolves `latest` to a number first, and a block mined at that moment removes its state.
 */
export const retryLatest = <transport extends Transport>(inner: transport): transport =>
  (options => {
    const { request, ...rest } = inner(options)
    const retry: typeof request = async (args, overrides) => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await request(args as never, overrides)
        } catch (error) {
          if (attempt === MAX_ATTEMPTS || !readsLatest(args) || !isBlockLost(error)) throw error
        }
      }
    }
    return { ...rest, request: retry }
  }) as transport

/** Whether a request reads the newest block: a node takes a missing block for `latest`. */
const readsLatest = ({ params }: { params?: unknown }) =>
  Array.isArray(params) && (params[1] === undefined || params[1] === 'latest')

const isBlockLost = (error: unknown) =>
  error instanceof BaseError && /BlockOutOfRange|header not found|unknown block/i.test(error.details)
