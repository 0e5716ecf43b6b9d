import { createClient } from '@agent-trading-service/client'

/** Every read of a service, by operation id. */
export type Reader = ReturnType<typeof createReader>

export const createReader = (url: string) => createClient({ baseUrl: url })
