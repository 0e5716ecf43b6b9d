import { getAddIntentQuote, submitAddIntent } from './add-intents.ts'
import { getAgentByERC8004 } from './agent-by-erc8004.ts'
import { getAgent, listAgents } from './agents.ts'
import { listAgentsByOwner } from './agents-by-owner.ts'
import { cancelIntents, getCancelQuote } from './cancel-intents.ts'
import { defineDiscovery } from './discovery.ts'
import { getEquityHistory } from './equity-history.ts'
import { getERC8004LinkQuote, linkERC8004 } from './erc8004-link.ts'
import { getAgentRegistrationFile, getRegistrations } from './erc8004-registration.ts'
import { streamAgentEvents, streamEvents } from './event-streams.ts'
import { getExitLadderIntentQuote, submitExitLadderIntent } from './exit-ladder-intents.ts'
import { getFacilitatorSupport, verifyPayment } from './facilitator.ts'
import { getFeedbackFile } from './feedback-file.ts'
import { getGasQuota } from './gas-quota.ts'
import { getHealth } from './health.ts'
import { getIntent } from './intent-status.ts'
import { getLeaderboard } from './leaderboard.ts'
import { getMandate, getMandateQuote, setMandate } from './mandate.ts'
import { getTradeIntentQuote, submitTradeIntent } from './open-intents.ts'
import type { Operation } from './operation.ts'
import { getIndex, replayIndex } from './operator-index.ts'
import { getIntake, setIntake } from './operator-intake.ts'
import { acceptOwnership, getAcceptanceQuote, getOwnershipQuote, offerOwnership } from './ownership.ts'
import { getPositionAutomation } from './position-automation.ts'
import { getPosition, listClosedPositions, listPositions } from './positions.ts'
import { getPrices } from './prices.ts'
import { refreshPrices } from './prices-refresh.ts'
import { getReduceIntentQuote, submitReduceIntent } from './reduce-intents.ts'
import { getRegistrationQuote, registerAgent } from './register.ts'
import { getRiskState } from './risk-state.ts'
import { getMetrics } from './service-metrics.ts'
import { getReadiness } from './service-readiness.ts'
import { verifySignedMessage } from './signature-check.ts'
import { getSignerQuote, setSigner } from './signer-rotation.ts'
import { getSigningVectors } from './signing-vectors.ts'
import { getStopQuote, stopAgent } from './stop.ts'
import { listTokens } from './tokens.ts'
import { getTradeHistory } from './trades.ts'
import { getTransaction } from './transactions.ts'
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

const endpoints = [
  getHealth,
  getReadiness,
  listVaults,
  getVault,
  listVaultTokens,
  getVaultStats,
  listTokens,
  getPrices,
  refreshPrices,
  getRegistrationQuote,
  registerAgent,
  getFacilitatorSupport,
  verifyPayment,
  listAgents,
  getAgent,
  listAgentsByOwner,
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
  getSignerQuote,
  setSigner,
  getCancelQuote,
  cancelIntents,
  getTradeIntentQuote,
  submitTradeIntent,
  getAddIntentQuote,
  submitAddIntent,
  getReduceIntentQuote,
  submitReduceIntent,
  getExitLadderIntentQuote,
  submitExitLadderIntent,
  getGasQuota,
  listPositions,
  listClosedPositions,
  getPosition,
  getPositionAutomation,
  getRiskState,
  getEquityHistory,
  getTradeHistory,
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
  getMetrics,
] as const satisfies readonly Operation[]

/** Every operation of the service, in the order of the API reference. HTTP routes, MCP tools and documents derive from it. */
export const operations = [defineDiscovery(endpoints), ...endpoints] as const satisfies readonly Operation[]
