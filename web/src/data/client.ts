import { AgentTradingError, type components, createClient, NetworkError } from '@agent-trading-service/client'

/** The responses of the service, by the names of its API description. */
export type Schema = components['schemas']

const baseUrl = window.location.origin

/** Reads for pages: a failure is shown soon, and read again by the page. */
export const reads = createClient({ baseUrl, retryBudgetMs: 1_500 })

/** Returns the error that pages show. */
export const toServiceError = (error: unknown): AgentTradingError =>
  error instanceof AgentTradingError
    ? error
    : new NetworkError('NETWORK_ERROR', 'The page could not read the response.', { retryable: true, cause: error })
