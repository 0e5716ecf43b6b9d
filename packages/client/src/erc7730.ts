// What hardware wallets show of a message before they sign it.
export { type ClearSigningDescriptor, clearSigningDescriptor } from '@agent-trading-service/protocol/clear-signing'
export { type PrimaryType, signingTypes } from '@agent-trading-service/protocol/typed-data'
