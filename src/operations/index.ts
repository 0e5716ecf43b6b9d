import { getAddIntentQuote, submitAddIntent } from './add-intents.ts'
import { getAgentStats } from './agent-stats.ts'
import { getAgent, getAgentByERC8004, listAgents, listAgentsByName, listAgentsByOwner } from './agents.ts'
import { cancelIntents, getCancelQuote } from './cancel.ts'
import { getCandles } from './candles.ts'
import { listCorporateActions } from './corporate-actions.ts'
import { getDepth } from './depth.ts'
import { defineDiscovery } from './discovery.ts'
import { getEquityHistory } from './equity-history.ts'
import { getERC8004LinkQuote, linkERC8004 } from './erc8004.ts'
import { getAgentRegistrationFile, getFeedbackFile, getRegistrations } from './erc8004-files.ts'
import { streamAgentEvents, streamEvents } from './events.ts'
import { getExitLadderIntentQuote, submitExitLadderIntent } from './exit-ladder-intents.ts'
import { getFacilitatorSupport, verifyPayment } from './facilitator.ts'
import { getFirstLossQuote, lockFirstLoss } from './first-loss.ts'
import { getHealth, getHealthHistory, getReadiness } from './health.ts'
import { getIntent } from './intents.ts'
import { getLeaderboard } from './leaderboard.ts'
import { getMandate, getMandateQuote, setMandate } from './mandate.ts'
import { getMetrics } from './metrics.ts'
import type { Operation } from './operation.ts'
import {
  freeWebhooks,
  getIndex,
  getIntake,
  getWebhookPlaces,
  getWebhooksOfAgent,
  replayIndex,
  resumeLane,
  setIntake,
} from './operator.ts'
import { cancelOrder, getOrder, getOrderQuote, listOrders, submitOrder } from './orders.ts'
import {
  acceptOwnership,
  getAcceptanceQuote,
  getOwnershipQuote,
  listOffers,
  listOwnerEvents,
  offerOwnership,
} from './owner.ts'
import { getPositionAutomation } from './position-automation.ts'
import { getPosition, listClosedPositions, listPositions } from './positions.ts'
import { getPriceReports, getPrices } from './prices.ts'
import { refreshPrices } from './prices-refresh.ts'
import { getGasQuota } from './quota.ts'
import { getReduceIntentQuote, submitReduceIntent } from './reduce-intents.ts'
import { getRegistrationQuote, registerAgent } from './register.ts'
import { advanceMarket, fireExits } from './rehearsal.ts'
import { getRiskState } from './risk-state.ts'
import { verifySignedMessage } from './signature-check.ts'
import { getSignerQuote, setSigner } from './signer.ts'
import { getSigningVectors } from './signing.ts'
import { getStopQuote, stopAgent } from './stop.ts'
import { listTokens } from './tokens.ts'
import { getTradeIntentQuote, submitTradeIntent } from './trade-intents.ts'
import { getTradeHistory, listTrades } from './trades.ts'
import { getTransaction } from './transactions.ts'
import { listVaultRequests } from './vault-requests.ts'
import { getVaultStats } from './vault-stats.ts'
import { getVault, listVaults, listVaultTokens } from './vaults.ts'
import {
  changeWebhook,
  createWebhook,
  getWebhookChangeQuote,
  getWebhookListQuote,
  getWebhookQuote,
  listWebhooks,
} from './webhooks.ts'
import { whatIf } from './what-if.ts'

const endpoints = [
  getHealth,
  getReadiness,
  getHealthHistory,
  listVaults,
  getVault,
  listVaultTokens,
  getVaultStats,
  listVaultRequests,
  listTokens,
  listCorporateActions,
  getPrices,
  getPriceReports,
  getCandles,
  getDepth,
  refreshPrices,
  getRegistrationQuote,
  registerAgent,
  getFacilitatorSupport,
  verifyPayment,
  listAgents,
  getAgent,
  listAgentsByOwner,
  listAgentsByName,
  getAgentByERC8004,
  getERC8004LinkQuote,
  linkERC8004,
  getAgentRegistrationFile,
  getRegistrations,
  getFeedbackFile,
  getMandate,
  getMandateQuote,
  setMandate,
  getStopQuote,
  stopAgent,
  getOwnershipQuote,
  offerOwnership,
  getAcceptanceQuote,
  acceptOwnership,
  listOwnerEvents,
  listOffers,
  getSignerQuote,
  setSigner,
  getCancelQuote,
  cancelIntents,
  getFirstLossQuote,
  lockFirstLoss,
  getTradeIntentQuote,
  submitTradeIntent,
  getAddIntentQuote,
  submitAddIntent,
  getReduceIntentQuote,
  submitReduceIntent,
  getExitLadderIntentQuote,
  submitExitLadderIntent,
  getOrderQuote,
  submitOrder,
  listOrders,
  getOrder,
  cancelOrder,
  whatIf,
  getGasQuota,
  listPositions,
  listClosedPositions,
  getPosition,
  getPositionAutomation,
  getRiskState,
  getEquityHistory,
  getAgentStats,
  getTradeHistory,
  listTrades,
  getLeaderboard,
  getTransaction,
  getIntent,
  verifySignedMessage,
  getSigningVectors,
  streamAgentEvents,
  streamEvents,
  getWebhookQuote,
  createWebhook,
  getWebhookListQuote,
  listWebhooks,
  getWebhookChangeQuote,
  changeWebhook,
  getIntake,
  setIntake,
  getIndex,
  replayIndex,
  getWebhookPlaces,
  getWebhooksOfAgent,
  freeWebhooks,
  resumeLane,
  getMetrics,
] as const satisfies readonly Operation[]

/**
 * Every operation of the service, in the order of the API reference. HTTP routes, MCP tools and documents derive from
 * it.
 */
export const operations = [defineDiscovery(endpoints), ...endpoints] as const satisfies readonly Operation[]

/** The operations that only a rehearsal serves. No document has them. */
export const rehearsalOperations: readonly Operation[] = [advanceMarket, fireExits]
