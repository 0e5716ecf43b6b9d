import { createClient } from '@agent-trading-service/client'
import { serviceFetch } from './service-url.ts'

/** Every read of a service, by operation id. */
export type Reader = ReturnType<typeof createReader>

export const createReader = (service: ServiceAddress) => createClient(addressOf(service))

/** Where the service is, and for how many seconds to retry while it is unavailable. */
export type ServiceAddress = { url: string; timeout?: number | undefined }

/** Returns the options of a client for a service. */
export const addressOf = ({ url, timeout }: ServiceAddress) => ({
  baseUrl: url,
  fetch: serviceFetch,
  ...(timeout !== undefined && { retryBudgetMs: timeout * 1_000 }),
})
