// The tables of the interface specification as data: what a client written from the specification relies on.

/** The JSON type of a field; `|null` may be null. */
export type FieldKind =
  | 'string'
  | 'digits'
  | 'address'
  | 'hash'
  | 'bytes32'
  | 'integer'
  | 'boolean'
  | 'null'
  | `${'string' | 'integer' | 'boolean'}|null`
export type ResponseShape = { [field: string]: FieldKind | ResponseShape | [ResponseShape | FieldKind] }

/** Section "Endpoints": every method and path, with its tool where the MCP section names one. */
export const endpoints: readonly (readonly [method: 'GET' | 'POST', path: string, tool?: string])[] = [
  ['GET', '/health'],
  ['GET', '/'],
  ['GET', '/llms.txt'],
  ['GET', '/docs/swagger.json'],
  ['GET', '/docs'],
  ['GET', '/vaults', 'svc_list_vaults'],
  ['GET', '/vaults/{id}'],
  ['GET', '/vaults/{id}/tokens', 'svc_list_vault_tokens'],
  ['GET', '/tokens', 'svc_list_tokens'],
  ['GET', '/prices', 'svc_get_prices'],
  ['POST', '/prices/refresh'],
  ['GET', '/agents/{agentId}', 'svc_get_agent'],
  ['GET', '/agents/by-owner/{owner}', 'svc_list_agents_by_owner'],
  ['GET', '/agents/by-erc8004/{erc8004AgentId}', 'svc_get_agent_by_erc8004'],
  ['POST', '/agents/{agentId}/erc8004/link', 'svc_link_agent_erc8004'],
  ['GET', '/agents/register/quote', 'svc_get_agent_registration_quote'],
  ['POST', '/agents/register', 'svc_register_agent'],
  ['GET', '/agents/{agentId}/trade-intents/quote'],
  ['GET', '/agents/{agentId}/add-intents/quote', 'svc_get_add_intent_quote'],
  ['GET', '/agents/{agentId}/reduce-intents/quote', 'svc_get_reduce_intent_quote'],
  ['GET', '/agents/{agentId}/exit-ladder-intents/quote', 'svc_get_exit_ladder_intent_quote'],
  ['POST', '/agents/{agentId}/trade-intents', 'svc_submit_trade_intent'],
  ['POST', '/agents/{agentId}/add-intents', 'svc_submit_add_intent'],
  ['POST', '/agents/{agentId}/reduce-intents', 'svc_submit_reduce_intent'],
  ['POST', '/agents/{agentId}/exit-ladder-intents', 'svc_submit_exit_ladder_intent'],
  ['GET', '/agents/{agentId}/positions', 'svc_get_agent_positions'],
  ['GET', '/agents/{agentId}/closed-positions', 'svc_list_closed_positions'],
  ['GET', '/agents/{agentId}/positions/{positionId}', 'svc_get_agent_position'],
  ['GET', '/agents/{agentId}/risk-state', 'svc_get_risk_state'],
  ['GET', '/agents/{agentId}/trades', 'svc_get_trade_history'],
  ['GET', '/transactions/{txHash}'],
  ['POST', '/mcp'],
]

const agentRecord: ResponseShape = {
  owner: 'address',
  signer: 'address',
  payoutRecipient: 'address',
  vault: 'address',
  track: 'integer',
  status: 'integer',
  name: 'string',
  metadataURI: 'string',
  createdAt: 'string',
  hasERC8004Identity: 'boolean',
  erc8004AgentId: 'string',
}
const exitRule: ResponseShape = { triggerType: 'string', triggerBps: 'integer', exitBps: 'integer' }
const ladderless: ResponseShape = {
  positionId: 'digits',
  agentId: 'digits',
  symbol: 'string',
  token: 'address',
  vault: 'address',
  tokenAmount: 'string',
  entryPriceUsdc: 'string',
  usdcCostBasis: 'string',
  maxSlippageBps: 'integer',
  status: 'string',
  nextRuleIndex: 'integer',
  openedAt: 'string',
  derived: { totalPnlUsdc: 'string', returnBps: 'integer|null' },
}
const agentPosition: ResponseShape = { ...ladderless, exitRules: [exitRule], pendingRules: [exitRule] }
const vaultTrackConfig: ResponseShape = {
  vault: 'address',
  trackId: 'integer',
  initialAllocation: 'string',
  maxAllocation: 'string',
  maxDrawdownBps: 'integer',
  maxTradeSizeBps: 'integer',
  maxDailyTurnoverBps: 'integer',
  maxDailyLossBps: 'integer',
  evaluationPeriod: 'string',
  minTrades: 'integer',
  promotionScore: 'integer',
  active: 'boolean',
  maxStopLossBps: 'integer',
  minTakeProfitBps: 'integer',
  maxTakeProfitBps: 'integer',
  requireStopLoss: 'boolean',
  requireTakeProfit: 'boolean',
}
const vault: ResponseShape = {
  id: 'string',
  name: 'string',
  slug: 'string',
  tagline: 'string',
  description: 'string',
  vaultTrackConfigs: [vaultTrackConfig],
  chainId: 'integer',
  contractAddress: 'address',
}
const token: ResponseShape = {
  symbol: 'string',
  name: 'string',
  address: 'address',
  decimals: 'integer',
  vaultIds: ['string'],
  listed: 'boolean',
  active: 'boolean',
  allowedInVault: 'boolean',
  price: { priceUsd: 'string', updatedAt: 'digits', stale: 'boolean' },
}
const allocation: ResponseShape = { used: 'string', cap: 'string', available: 'string' }
const exitBounds: ResponseShape = {
  maxStopLossBps: 'integer',
  minTakeProfitBps: 'integer',
  maxTakeProfitBps: 'integer',
  requireStopLoss: 'boolean',
  requireTakeProfit: 'boolean',
}
const accountRiskBounds: ResponseShape = { maxDailyLossBps: 'integer', maxDrawdownBps: 'integer' }
const eip712: ResponseShape = {
  domainName: 'string',
  domainVersion: 'string',
  chainId: 'integer',
  verifyingContract: 'address',
  primaryType: 'string',
}
const quote: ResponseShape = { agentId: 'digits', signer: 'address', nonce: 'digits', eip712, tradeRouter: 'address' }
const receipt: ResponseShape = { agentId: 'digits', positionId: 'digits', transactionHash: 'hash' }

/** The successful response of each operation, by method and path. Additional fields are allowed. */
export const responses: Record<string, ResponseShape> = {
  'GET /health': { status: 'string', service: 'string' },
  'GET /vaults/{id}': { vault },
  'GET /vaults/{id}/tokens': {
    vaultId: 'string',
    chainId: 'integer',
    priceOracle: 'string',
    tokens: [token],
    total: 'integer',
  },
  'GET /agents/{agentId}': { agentId: 'digits', agent: agentRecord, agentRegistry: 'address' },
  'GET /agents/by-owner/{owner}': {
    owner: 'address',
    agentRegistry: 'address',
    count: 'integer',
    agents: [{ agentId: 'digits', agent: agentRecord }],
  },
  'GET /agents/register/quote': {
    registrationFee: {
      amount: 'string',
      assetSymbol: 'string',
      tokenAddress: 'address',
      decimals: 'integer',
      displayUsd: 'string',
    },
    x402: {
      enabled: 'boolean',
      network: 'string|null',
      payTo: 'string|null',
      facilitatorUrl: 'string|null',
      httpRoute: 'string',
    },
    eip712: { ...eip712, selfRegisterTypehash: 'bytes32' },
    agentRegistry: 'address',
    signerNonce: 'string',
  },
  'POST /agents/register': {
    agentId: 'digits',
    transactionHash: 'hash',
    transaction: { to: 'address', data: 'string', chainId: 'integer', description: 'string' },
    message: 'string',
  },
  'GET /agents/{agentId}/trade-intents/quote': {
    ...quote,
    vault: 'address',
    allocation,
    allowedSymbols: ['string'],
    trackId: 'integer',
    exitBounds,
    accountRiskBounds,
    dailyRealizedPnlUsdc: 'string',
    defaultExit: [exitRule],
    token: 'string',
  },
  'GET /agents/{agentId}/add-intents/quote': { ...quote, positionId: 'digits', allocation, position: ladderless },
  'GET /agents/{agentId}/reduce-intents/quote': { ...quote, positionId: 'digits', position: agentPosition },
  'GET /agents/{agentId}/exit-ladder-intents/quote': {
    ...quote,
    positionId: 'digits',
    exitBounds,
    currentRules: [exitRule],
    pendingRules: [exitRule],
    nextRuleIndex: 'integer',
  },
  'POST /agents/{agentId}/trade-intents': receipt,
  'POST /agents/{agentId}/add-intents': receipt,
  'POST /agents/{agentId}/reduce-intents': receipt,
  'POST /agents/{agentId}/exit-ladder-intents': receipt,
  'GET /agents/{agentId}/positions': { agentId: 'digits', positions: [agentPosition] },
  'GET /agents/{agentId}/closed-positions': { agentId: 'digits', positions: [agentPosition] },
  'GET /agents/{agentId}/positions/{positionId}': {
    agentId: 'digits',
    position: { ...agentPosition, realizedPnlUsdc: 'string', unrealizedPnlUsdc: 'string' },
  },
  'GET /agents/{agentId}/risk-state': {
    agentId: 'digits',
    trackId: 'integer',
    allocation,
    accountRiskBounds,
    equity: { peakUsdc: 'string', currentUsdc: 'string', currentDrawdownBps: 'integer' },
    pnl: { lifetimeRealizedUsdc: 'string', dailyRealizedUsdc: 'string', day: 'string' },
    positions: { opened: 'integer', closed: 'integer', openCount: 'integer' },
    breaches: { drawdown: 'boolean', dailyLoss: 'boolean' },
    derived: {
      returnBps: 'integer',
      unrealizedPnlUsdc: 'string',
      drawdownUtilizationBps: 'integer',
      maxDailyLossUsdc: 'string',
      dailyLossUsedUsdc: 'string',
      dailyLossUtilizationBps: 'integer',
    },
    promotionReadiness: {
      minTradesRequired: 'integer',
      tradesCompleted: 'integer',
      meetsMinTrades: 'boolean',
      evaluationPeriodSeconds: 'string',
      evaluationElapsedSeconds: 'string',
      meetsEvaluationPeriod: 'boolean',
      promotionScoreRequired: 'integer',
      alphaScore: 'integer|null',
      meetsAlphaScore: 'boolean|null',
      eligible: 'boolean',
      blockers: ['string'],
    },
  },
  'GET /transactions/{txHash}': {
    transactionHash: 'hash',
    status: 'string',
    blockNumber: 'string',
    blockTimestamp: 'string',
    from: 'address',
    to: 'address',
  },
}

/** Section "Signing schemas": the types, fields in order. */
export const signingTypes = {
  SelfRegister:
    'address vault, string name, string metadataURI, address signer, bool linkERC8004, uint256 erc8004AgentId, uint256 nonce, uint256 deadline',
  OpenPosition:
    'uint256 agentId, address vault, address token, uint256 usdcAmount, uint256 minTokenOut, uint16 maxSlippageBps, bytes32 exitsHash, uint256 deadline, uint256 nonce',
}

/** Section "Errors": the statuses. */
export const statuses = [200, 201, 400, 402, 404, 500, 502, 503]
