import { refuse } from '../errors/refuse.ts'
import { withDeadline } from '../timeout.ts'

/** How long a read may take altogether, however many requests to nodes it needs. */
const MAX_READ_MS = 4_500

/** Resolves with the response of a read. Throws CHAIN_UNREACHABLE if it takes longer: only its nodes can be slow. */
export async function respondInTime<Response extends object>(read: Promise<Response>): Promise<Response> {
  const response = await withDeadline(read, Date.now() + MAX_READ_MS, () => undefined)
  if (response === undefined)
    throw refuse('CHAIN_UNREACHABLE', {}, { cause: new Error(`a read took more than ${MAX_READ_MS} ms`) })
  return response
}
