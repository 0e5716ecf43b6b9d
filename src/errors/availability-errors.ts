import { row } from './error-row.ts'

/** What the deployment cannot do: not configured, not reachable, at capacity, or broken. */
export const availabilityErrors = {
  CHAIN_UNREACHABLE: row({
    status: 502,
    sentence: () => 'The chain cannot be reached.',
    remedy: 'Try again in a moment.',
    retryable: true,
    retryAfterSeconds: 2,
  }),
  HISTORY_UNAVAILABLE: row({
    status: 503,
    sentence: () => 'The history is not indexed yet, or its database cannot be reached.',
    remedy: 'Try again in a moment; `history` of /health/ready shows how far the indexer is.',
    toolRemedy: 'Try again in a moment; reads of the present work without the history.',
    retryable: true,
    retryAfterSeconds: 2,
  }),
  TOO_MANY_STREAMS: row({
    status: 503,
    sentence: () => 'The maximum number of event streams of this deployment is open.',
    remedy: 'Try again in a moment; one stream of GET /events can replace several streams of single agents.',
    toolRemedy: 'Try again in a moment.',
    retryable: true,
    retryAfterSeconds: 5,
    level: 'warn',
  }),
  TOO_MANY_STREAMS_OF_CLIENT: row({
    status: 429,
    sentence: () => 'Your address has the maximum number of event streams open.',
    remedy: 'Close some of them; one stream of GET /events can replace several streams of single agents.',
    toolRemedy: 'Close some of them.',
    retryable: true,
    retryAfterSeconds: 15,
  }),
  CHAIN_NOT_CONFIGURED: row({
    status: 500,
    sentence: () => 'This deployment has no chain configuration.',
    remedy: 'The operator must set CHAIN_ID, RPC_URL and CONTRACTS.',
  }),
  TRADING_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no trade router.',
    remedy: 'The operator must name TradeRouter, PositionManager and their companions in CONTRACTS.',
  }),
  EXECUTOR_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no executor account.',
    remedy: 'The operator must set EXECUTOR_PRIVATE_KEY.',
  }),
  RELAYER_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no relayer account for registrations.',
    remedy: 'The operator must set RELAYER_PRIVATE_KEY; a signer can also call selfRegisterAgent directly.',
  }),
  PRICE_UPDATER_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no account that can post prices.',
    remedy: 'The operator must set ORACLE_UPDATER_PRIVATE_KEY.',
  }),
  PRICE_PROVIDER_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no market-data provider.',
    remedy: 'The operator must set PRICE_PROVIDER; until then only others post prices.',
  }),
  INTAKE_CLOSED: row<{ kind: string; reason: string; since: string }>({
    status: 503,
    sentence: ({ kind, reason }) => `The operator has closed the intake of \`${kind}\`: ${reason}`,
    remedy:
      'Nothing was sent. Other kinds are not affected; `closedIntake` of GET /health shows when it is open again.',
    toolRemedy: 'Nothing was sent. Other kinds are not affected; try again later.',
    retryable: true,
    retryAfterSeconds: 60,
    level: 'warn',
  }),
  INTAKE_SWITCHES_UNREACHABLE: row({
    status: 503,
    sentence: () => 'The intake switches cannot be changed at the moment; nothing was changed.',
    remedy: 'Try again in a moment.',
    retryable: true,
    retryAfterSeconds: 2,
  }),
  OPERATOR_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment has no secret of its operator.',
    remedy: 'The operator must set OPERATOR_SECRET.',
    level: 'warn',
  }),
  PRICE_REFRESH_DISABLED: row({
    status: 503,
    sentence: () => 'This deployment refreshes prices by itself; requests for it are disabled.',
    remedy: 'The operator must set PRICE_REFRESH_SECRET to allow requests with that bearer token.',
  }),
  NOT_READY: row<{ problem: string; [name: string]: unknown }>({
    status: 503,
    sentence: ({ problem }) => `Trading is not possible: ${problem}.`,
    remedy: 'See details for the state of every component; reads may still work.',
    retryable: true,
    retryAfterSeconds: 10,
  }),
  INTERNAL: row({
    status: 500,
    sentence: () => 'The service failed unexpectedly.',
    remedy: 'Report the requestId to the operator.',
  }),
}
