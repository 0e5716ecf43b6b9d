import type { ComponentChildren } from 'preact'
import type { Schema } from '../../data/client.ts'
import { formatBps, formatUsdc } from '../../format/amounts.ts'
import { Percent, Usdc } from '../../parts/figures.tsx'
import { Gauge } from '../../parts/gauge.tsx'
import { shareBps } from '../vaults.tsx'

type LimitsProps = { risk: Schema['RiskState']; control: Schema['AgentControl'] | undefined }

/** The limits of an agent as gauges of what is used. */
export function Limits({ risk, control }: LimitsProps) {
  const { allocation, equity, accountRiskBounds, derived, breaches, waste } = risk
  const exposure = control?.mandate.maxExposureUsdc
  return (
    <div class="gauges">
      <UsdcGauge label="Allocation" used={allocation.used} limit={allocation.effectiveCap} />
      {accountRiskBounds.maxDrawdownBps > 0 ? (
        <Gauge
          label="Drawdown"
          bps={derived.drawdownUtilizationBps}
          used={<Percent bps={equity.currentDrawdownBps} />}
          limit={<Percent bps={accountRiskBounds.maxDrawdownBps} />}
          text={`${formatBps(equity.currentDrawdownBps)} of ${formatBps(accountRiskBounds.maxDrawdownBps)}`}
          isBreached={breaches.drawdown}
        />
      ) : (
        <NoLimit label="Drawdown">no limit of the track</NoLimit>
      )}
      {derived.maxDailyLossUsdc === '0' ? (
        <NoLimit label="Loss today">no limit of the track</NoLimit>
      ) : (
        <UsdcGauge
          label="Loss today"
          used={derived.dailyLossUsedUsdc}
          limit={derived.maxDailyLossUsdc}
          isBreached={breaches.dailyLoss}
        />
      )}
      {waste.maxUsdc !== null && (
        <UsdcGauge
          label="Waste"
          used={waste.usdc}
          limit={waste.maxUsdc}
          isBreached={BigInt(waste.usdc) > BigInt(waste.maxUsdc)}
        />
      )}
      {exposure && <UsdcGauge label="Exposure under the mandate" used={allocation.used} limit={exposure} />}
      {allocation.effectiveCap !== allocation.cap && (
        <p class="fine">
          The allocation is <Usdc value={allocation.cap} />, less what the loss realized on the track takes of it.
        </p>
      )}
    </div>
  )
}

type UsdcGaugeProps = { label: string; used: string; limit: string; isBreached?: boolean }

const UsdcGauge = ({ label, used, limit, isBreached = false }: UsdcGaugeProps) => (
  <Gauge
    label={label}
    bps={BigInt(limit) === 0n ? 10_000 : shareBps(used, limit)}
    used={<Usdc value={used} unit={false} />}
    limit={<Usdc value={limit} />}
    text={`${formatUsdc(used)} of ${formatUsdc(limit)} USDC`}
    isBreached={isBreached}
  />
)

const NoLimit = ({ label, children }: { label: string; children: ComponentChildren }) => (
  <div class="gauge-text">
    <span class="gauge-label">{label}</span>
    <span class="fine">{children}</span>
  </div>
)
