import { BaseError, type Transport } from 'viem'

const ATTEMPTS = 3

/**
 * A transport that asks again when the node has lost the newest block while it looked for it: anvil under
 * `--prune-history` turns `latest` into a number first, and a block mined at that moment takes its state away; of nodes
 * behind a balancer one may know a block that the other has not seen.
 */
export const steady = <transport extends Transport>(inner: transport): transport =>
  (options => {
    const { request, ...rest } = inner(options)
    const ask: typeof request = async (args, overrides) => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await request(args as never, overrides)
        } catch (error) {
          if (attempt === ATTEMPTS || !isOfLatest(args) || !isBetweenBlocks(error)) throw error
        }
      }
    }
    return { ...rest, request: ask }
  }) as transport

const isOfLatest = ({ params }: { params?: unknown }) => Array.isArray(params) && params[1] === 'latest'

const isBetweenBlocks = (error: unknown) =>
  error instanceof BaseError && /BlockOutOfRange|header not found|unknown block/i.test(error.details)
