import type { ServiceEvent } from '@agent-trading-service/client'
import { readText, writeText } from './storage.ts'
import { createStore } from './store.ts'

/** A stop-loss that fired. `id` is that of its event. */
export type FiredStop = { id: string; agentId: string; symbol: string }

/** Returns the stop-loss that an event reports. */
export function firedStopOf({ id, type, data }: ServiceEvent): FiredStop | undefined {
  if (type !== 'exit' || data.triggerType !== 'StopLoss') return undefined
  // The events of streams also name the agent, which a list of its trades does not repeat.
  const { symbol, agentId } = data as typeof data & { agentId: string }
  return { id, agentId, symbol }
}

const REMEMBERED = 'stop-alerts'

/**
 * Whether this tab says when a stop-loss fires. Then it also follows events while it is hidden. A reload keeps the
 * choice.
 */
export const stopAlerts = createStore(readText('sessionStorage', REMEMBERED) !== undefined)

export const canNotify = (): boolean => 'Notification' in window && Notification.permission === 'granted'

/** Turns the alerts on or off. Asks the browser for notifications, which may be refused: the title says it anyway. */
export async function chooseStopAlerts(isOn: boolean): Promise<void> {
  if (isOn && 'Notification' in window) await Notification.requestPermission().catch(() => {})
  writeText('sessionStorage', REMEMBERED, isOn ? 'on' : undefined)
  stopAlerts.set(isOn)
}

const MARK = '● '

/**
 * Says that a stop-loss fired: in the title until somebody looks at the tab, and as a notification if the browser
 * allows it.
 */
export function alertStop({ id, agentId, symbol }: FiredStop): void {
  if (!stopAlerts.get()) return
  const text = `Stop-loss fired: ${symbol} of agent ${agentId}`
  if (document.visibilityState !== 'visible' || !document.hasFocus()) {
    unmark()
    titleBefore = document.title
    document.title = MARK + text
  }
  if (!canNotify()) return
  try {
    // The tag makes one of the same notification from several tabs.
    const notification = new Notification(text, { tag: id, icon: '/app/icon.svg' })
    notification.onclick = () => window.focus()
  } catch {
    // Some phones only let service workers notify.
  }
}

let titleBefore: string | undefined

function unmark() {
  if (titleBefore !== undefined && document.title.startsWith(MARK)) document.title = titleBefore
  titleBefore = undefined
}
window.addEventListener('focus', unmark)
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && unmark())
