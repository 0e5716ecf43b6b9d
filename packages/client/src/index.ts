export {
  type CarriedPrices,
  carriedPricesProblem,
  encodeWithPrices,
} from '@agent-trading-service/protocol/carried-prices'
export { type PrimaryType, serviceDomainName, signingTypes } from '@agent-trading-service/protocol/typed-data'
export type { Account } from './account.ts'
export {
  type AddRequest,
  type CloseRequest,
  formatExits,
  type IntentReceipt,
  type LadderRequest,
  type OpenRequest,
  parseExits,
  type ReduceRequest,
} from './agent.ts'
export { formatToken, formatUsdc, type Integer, parseToken, parseUsdc, type UsdcAmount } from './amounts.ts'
export { type Client, type ClientAgent, type ClientOptions, type ClientOwner, createClient } from './client.ts'
export { DOMAIN_VERSION, domainNames, type Pins } from './deployment.ts'
export {
  AgentTradingError,
  type ClientErrorDetails,
  type ErrorCode,
  type ErrorKind,
  NetworkError,
  NotFoundError,
  PaymentError,
  type QuoteMismatch,
  RateLimitedError,
  RefusedError,
  type Submission,
  UnavailableError,
  UnknownOutcomeError,
  UntrustedQuoteError,
  ValidationError,
} from './errors.ts'
export type { EventData, EventsRequest, ServiceEvent, StreamPosition } from './events.ts'
export type { ErrorDetails } from './generated/error-codes.ts'
export type { components, operations } from './generated/openapi.ts'
export { type ReadDescription, readDescriptions } from './generated/read-descriptions.ts'
export { readPaths } from './generated/read-paths.ts'
export type { Fetch } from './http.ts'
export type { JudgedDeadline } from './judge-deadline.ts'
export type { NonceRecord, NonceStore } from './nonces.ts'
export type { CancelOrderRequest, OrderReceipt, OrderRequest, OrderType } from './orders.ts'
export type {
  CancelRequest,
  LinkReceipt,
  LinkRequest,
  LockFirstLossRequest,
  MandateMode,
  MandateRequest,
  OwnerReceipt,
  SignerRequest,
  StopRequest,
  TransferRequest,
} from './owner.ts'
export type { Check, MessageOptions, Prepared } from './prepare.ts'
export type { ReadId, ReadInput, ReadOutput, Reads } from './reads.ts'
export { rebuildTypedData } from './rebuild-typed-data.ts'
export type {
  PayingRegisterRequest,
  PreparedRegistration,
  RegisterRequest,
  RegistrationQuote,
  RegistrationReceipt,
} from './register.ts'
export type { Payer } from './submit.ts'
export { type Domain, type ExitRule, hashExits, type TypedData } from './typed-data.ts'
export type { WebhookEventType, WebhookInfo, WebhookRequest, WebhookWithSecret } from './webhooks.ts'
