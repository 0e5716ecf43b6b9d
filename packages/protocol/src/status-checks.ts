import type { Check } from './check.ts'
import { AgentStatus, PositionStatus } from './enums.ts'
import type { TokenTerms, TradingTerms } from './router-check-inputs.ts'

// Whether agent, vault, track, token and position are in a state in which the router accepts an intent.

export const agentChecks = ({ registryPaused, agent }: TradingTerms): Check[] => [
  { rule: 'registryNotPaused', code: 'REGISTRY_PAUSED', pass: !registryPaused },
  {
    rule: 'agentActive',
    code: 'AGENT_NOT_TRADABLE',
    pass: agent.status === AgentStatus.Active,
    used: BigInt(agent.status),
    limit: BigInt(AgentStatus.Active),
  },
]

/** A failed or exited agent changes no ladder; only in a deployment with the extension. */
export const agentNotOverCheck = ({ agent }: TradingTerms): Check => ({
  rule: 'agentNotOver',
  code: 'AGENT_NOT_TRADABLE',
  pass: agent.status !== AgentStatus.Failed && agent.status !== AgentStatus.Exited,
  used: BigInt(agent.status),
})

export const tradingNotPausedCheck = ({ vault }: TradingTerms): Check => ({
  rule: 'tradingNotPaused',
  code: 'TRADING_PAUSED',
  pass: !vault.tradingPaused,
})

export const trackActiveCheck = ({ trackActive }: TradingTerms): Check => ({
  rule: 'trackActive',
  code: 'VAULT_TRACK_NOT_ACTIVE',
  pass: trackActive,
})

export const tokenAllowedCheck = ({ allowed }: TokenTerms): Check => ({
  rule: 'tokenAllowed',
  code: 'TOKEN_NOT_ALLOWED',
  pass: allowed,
})

export const onePositionPerTokenCheck = ({ openPositionId }: TokenTerms): Check => ({
  rule: 'oneOpenPositionPerToken',
  code: 'POSITION_ALREADY_OPEN',
  pass: openPositionId === 0n,
  ...(openPositionId !== 0n && { used: openPositionId }),
})

export const openPositionCheck = ({ position }: TradingTerms): Check => ({
  rule: 'positionOpen',
  code: 'POSITION_NOT_OPEN',
  pass: position?.status === PositionStatus.Open,
})

export const capitalModeChecks = ({ extension, position }: TradingTerms): Check[] =>
  extension === undefined || position === undefined
    ? []
    : [
        {
          rule: 'capitalMode',
          code: 'CAPITAL_MODE_MISMATCH',
          pass: position.capitalMode === extension.capitalMode,
        },
      ]
