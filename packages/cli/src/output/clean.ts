import { escapeUnseenInJson, showUnseen } from '@agent-trading-service/protocol/unseen-text'

/**
 * Returns a text on one line, with the names of unseen characters in their place: texts of the service and of strangers
 * reach the terminal, and some of these characters move the cursor, clear the screen or change the order of letters.
 */
export const clean = (text: string): string => showUnseen(text.replace(/[\t\n\r]/g, ' '))

/** The same for a text whose line ends are our own. */
export const cleanLines = (text: string): string => text.split('\n').map(clean).join('\n')

/** Returns JSON with unseen characters escaped, so the data stay the same. Line ends only indent. */
export const printableJson = (value: unknown, indent?: number): string =>
  escapeUnseenInJson(JSON.stringify(value, null, indent))
