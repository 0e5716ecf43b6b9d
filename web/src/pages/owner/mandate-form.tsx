import { useState } from 'preact/hooks'
import { reads, type Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { parseAmount } from '../../format/amounts.ts'
import { SignedAction } from '../../wallet/signed-action.tsx'
import { type Draft, edit, fieldsOf, fromLocalField, hasDropped, LIMITS, MODES, stateOf } from './mandate-draft.ts'
import { ownerOf } from './owner-client.ts'

const MODE_TEXT = {
  trade: 'Open, add, reduce and close',
  reduceOnly: 'Only reduce and close',
  stopped: 'Only reduce, close, tighten exits',
}
type Mode = (typeof MODES)[number]
type MandateFormProps = { control: Schema['AgentControl']; reload(): void }

const DROPPED =
  'The mandate changed, or its owner signed something else, while the fields were edited. They now show the mandate on chain.'
const CHANGED =
  'Nothing was signed: the mandate changed, or its owner signed something else, since these fields were reviewed. Check them again.'

/** Returns the tokens that an agent's vault allows; all of them while the vault is unknown. */
export function useTokensOf(agentId: string): Schema['Token'][] {
  const tokens = useRead('listTokens', {}, { pollMs: 120_000 })
  const agent = useRead('getAgent', { agentId })
  const vaults = useRead('listVaults', {}, { pollMs: 120_000 })
  const vault = vaults.data?.vaults.find(({ contractAddress }) => contractAddress === agent.data?.agent.vault)
  return tokens.data?.tokens.filter(({ vaultIds }) => vault === undefined || vaultIds.includes(vault.id)) ?? []
}

/** The fields of a mandate: the one on chain, with what was edited. An empty limit is no limit. */
export function MandateForm({ control, reload }: MandateFormProps) {
  const { agentId } = control
  const choices = useTokensOf(agentId)
  const [draft, setDraft] = useState<Draft>()
  const { mode, allowed, until, ...limits } = fieldsOf(control, draft)
  const validUntil = fromLocalField(until)
  const isPast = validUntil !== undefined && validUntil <= Number(control.asOf.blockTimestamp)
  const change = (edits: Draft['edits']) => setDraft(edit(control, draft, edits))
  const wrong = LIMITS.find(([name]) => limits[name].trim() !== '' && !parseAmount(limits[name]))

  const prepare = async () => {
    const given = LIMITS.flatMap(([name]) => {
      const text = limits[name].trim().replaceAll(',', '')
      return text === '' ? [] : [[name, text] as const]
    })
    const shown = stateOf(control)
    const owner = await ownerOf(agentId)
    const prepared = await owner.prepareMandate({
      mode,
      ...Object.fromEntries(given),
      ...(allowed.length > 0 && { allowedTokens: allowed }),
      ...(validUntil !== undefined && { validUntil: BigInt(validUntil) }),
    })
    return {
      ...prepared,
      async findObstacle() {
        const present = await reads.getMandate({ agentId })
        if (stateOf(present) === shown) return undefined
        reload()
        return CHANGED
      },
    }
  }
  return (
    <SignedAction
      title="Set the mandate"
      text="What the agent may do, within the rules of its track. It replaces the whole mandate; an empty limit is no limit. It never limits closing and reducing."
      review="Review"
      owner={control.owner}
      notice={hasDropped(control, draft) ? DROPPED : undefined}
      problem={
        wrong
          ? `${wrong[1]}: enter a number above 0 with at most 6 decimals, or nothing.`
          : isPast
            ? 'Until: enter a time to come, or nothing for a mandate without an end.'
            : undefined
      }
      prepare={prepare}
    >
      <label class="field">
        <span>Trading</span>
        <select value={mode} onChange={event => change({ mode: event.currentTarget.value as Mode })}>
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
              onInput={event => change({ [name]: event.currentTarget.value })}
            />
          </label>
        ))}
        <label class="field">
          <span>Until; empty means no end</span>
          <input
            type="datetime-local"
            step="1"
            value={until}
            aria-invalid={isPast}
            onInput={event => change({ until: event.currentTarget.value })}
          />
        </label>
      </div>
      <fieldset class="tokens">
        <legend>Tokens it may buy; none chosen means all of the vault</legend>
        {choices.map(({ symbol, address }) => (
          <label key={address}>
            <input
              type="checkbox"
              checked={allowed.includes(address)}
              onChange={event =>
                change({
                  allowed: event.currentTarget.checked
                    ? [...allowed, address]
                    : allowed.filter(token => token !== address),
                })
              }
            />{' '}
            {symbol}
          </label>
        ))}
      </fieldset>
    </SignedAction>
  )
}
