import { useState } from 'preact/hooks'
import { canNotify, chooseStopAlerts, stopAlerts } from '../data/stop-alerts.ts'
import { useStore } from '../data/store.ts'

/** Turns on that this tab says when a stop-loss fires. Nothing is asked before it is pressed. */
export function StopAlertChoice() {
  const isOn = useStore(stopAlerts)
  const [isAsked, setAsked] = useState(false)
  async function choose() {
    setAsked(true)
    await chooseStopAlerts(!isOn)
    setAsked(false)
  }
  return (
    <span class="stop-alert">
      <span class="fine" role="status">
        {isOn && (canNotify() ? 'in the title and as a notification' : 'in the title of this tab')}
      </span>{' '}
      <button type="button" class="small" aria-pressed={isOn} disabled={isAsked} onClick={choose}>
        Alert me to stops
      </button>
    </span>
  )
}
