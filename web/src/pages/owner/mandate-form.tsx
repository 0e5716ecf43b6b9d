import { useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { formatExactly, parseAmount } from '../../format/amounts.ts'
import { SignedAction } from '../../wallet/signed-action.tsx'
import { ownerOf } from './owner-client.ts'

const LIMITS = [
  ['maxTradeUsdc', 'Largest trade, USDC'],
  ['maxDailyTurnoverUsdc', 'Buys in 24 hours, USDC'],
  ['maxExposureUsdc', 'Largest exposure, USDC'],
] as const
type Limits = Record<(typeof LIMITS)[number][0], string>
const MODES = ['trade', 'reduceOnly', 'stopped'] as const
const MODE_TEXT = {
  trade: 'Trade: open, add, reduce and close',
  reduceOnly: 'Reduce only: no buying',
  stopped: 'Stopped: no buying, exits may only be tightened',
}
type Mode = (typeof MODES)[number]

/** The fields of a mandate, filled with the present one. An empty limit is no limit. */
export function MandateForm({ control }: { control: Schema['AgentControl'] }) {
  const { mandate, agentId } = control
  const tokens = useRead('listTokens', {}, { pollMs: 120_000 })
  const agent = useRead('getAgent', { agentId })
  const vaults = useRead('listVaults', {}, { pollMs: 120_000 })
  const vault = vaults.data?.vaults.find(({ contractAddress }) => contractAddress === agent.data?.agent.vault)
  const [mode, setMode] = useState<Mode>(MODES.find(known => known === mandate.mode) ?? 'trade')
  const [limits, setLimits] = useState<Limits>({
    maxTradeUsdc: toHuman(mandate.maxTradeUsdc),
    maxDailyTurnoverUsdc: toHuman(mandate.maxDailyTurnoverUsdc),
    maxExposureUsdc: toHuman(mandate.maxExposureUsdc),
  })
  const [allowed, setAllowed] = useState<string[]>(mandate.allowedTokens?.map(({ address }) => address) ?? [])
  const wrong = LIMITS.find(([name]) => limits[name].trim() !== '' && !parseAmount(limits[name]))
  const choices = tokens.data?.tokens.filter(({ vaultIds }) => vault === undefined || vaultIds.includes(vault.id)) ?? []

  const prepare = async () => {
    const given = LIMITS.flatMap(([name]) => {
      const text = limits[name].trim().replaceAll(',', '')
      return text === '' ? [] : [[name, text] as const]
    })
    const owner = await ownerOf(agentId)
    return owner.prepareMandate({
      mode,
      ...Object.fromEntries(given),
      ...(allowed.length > 0 && { allowedTokens: allowed }),
      ...(mandate.validUntil !== null && { validUntil: BigInt(mandate.validUntil) }),
    })
  }
  return (
    <SignedAction
      title="Set the mandate"
      text="What the agent may do, within the rules of its track. It replaces the whole mandate; an empty limit is no limit. Closing and reducing is always allowed."
      review="Review"
      problem={wrong && `${wrong[1]}: enter a number above 0 with at most 6 decimals, or nothing.`}
      prepare={prepare}
    >
      <label class="field">
        <span>Trading</span>
        <select value={mode} onChange={event => setMode(event.currentTarget.value as Mode)}>
          {MODES.map(value => (
            <option key={value} value={value} selected={value === mode}>
              {MODE_TEXT[value]}
            </option>
          ))}
        </select>
      </label>
      <div class="fields">
        {LIMITS.map(([name, label]) => (
          <label key={name} class="field">
            <span>{label}</span>
            <input
              inputMode="decimal"
              autocomplete="off"
              placeholder="no limit"
              value={limits[name]}
              aria-invalid={wrong?.[0] === name}
              onInput={event => setLimits({ ...limits, [name]: event.currentTarget.value })}
            />
          </label>
        ))}
      </div>
      <fieldset class="tokens">
        <legend>Tokens it may buy; none chosen means all of the vault</legend>
        {choices.map(({ symbol, address }) => (
          <label key={address}>
            <input
              type="checkbox"
              checked={allowed.includes(address)}
              onChange={event =>
                setAllowed(
                  event.currentTarget.checked ? [...allowed, address] : allowed.filter(token => token !== address),
                )
              }
            />{' '}
            {symbol}
          </label>
        ))}
      </fieldset>
    </SignedAction>
  )
}

const toHuman = (base: string | null): string => (base === null ? '' : formatExactly(base, 6).replaceAll(',', ''))
