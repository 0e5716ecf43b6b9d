import { readDescriptions } from '@agent-trading-service/client'
import type { Failure } from '../failure.ts'

// The same failure reaches a person as a command, and a model as a tool.

const ASK_USER = 'Ask the user to'
const RESTART = 'then start this server again'

/** What a model can do, by the code of a failure whose remedy is a command. */
const toolRemedies: Record<string, string> = {
  READ_ONLY: `${ASK_USER} add \`--allow trade\` to the arguments of this server, ${RESTART}.`,
  KEY_NOT_FOUND: `${ASK_USER} create a key with \`ats key new\`, or to name one of the keys as ATS_KEY in the environment of this server. Reads work without.`,
  KEY_FILE_INVALID: `${ASK_USER} repair or remove the named file.`,
  PASSWORD_MISSING: `${ASK_USER} set ATS_PASSWORD_FILE in the environment of this server, ${RESTART}. Never ask for the password itself.`,
  WRONG_PASSWORD: `${ASK_USER} correct the file that ATS_PASSWORD_FILE names, ${RESTART}. Never ask for the password itself.`,
  AGENT_MISSING: 'Pass agentId. svc_list_agents_by_owner lists the agents of an owner; register creates one.',
  FEE_TOO_HIGH: `${ASK_USER} allow it with \`--max-fee\` in the arguments of this server.`,
  FEE_VALID_TOO_LONG: `${ASK_USER} ask the operator of the service.`,
  PENDING_MESSAGE: 'Call `resume` until it says what became of that message; then decide whether you still need this.',
  UNKNOWN_OUTCOME: 'Call `resume` until it says what became of it; do not repeat anything before.',
  NOT_PENDING: 'Call `resume` without a digest for all of them, or svc_get_intent for one that the service knows.',
  PENDING_DAMAGED: `Call svc_get_intent with the digest; then ${ASK_USER.toLowerCase()} delete the file.`,
  WRONG_ACCOUNT: `${ASK_USER} name the key of that address as ATS_KEY in the environment of this server.`,
  URL_OF_A_NODE: `${ASK_USER} set ATS_URL of this server to the URL of the service.`,
  NETWORK_ERROR:
    'Try again in a moment: trades, closes and stops need the service. The tool `resume` finds the outcome of a trade that was already posted.',
  CHECKS_FAILED: 'Change the request so that every check passes; details has the limits.',
}

const toolOf = new Map<string, string>(
  Object.values(readDescriptions).flatMap(({ path, tool }) => (tool ? [[`GET ${path}`, tool]] : [])),
)

/** The local tools that post to an endpoint of the service. */
const localToolOf: Record<string, string> = {
  'POST /agents/register': 'register',
  'POST /agents/{agentId}/trade-intents': 'trade',
  'POST /agents/{agentId}/add-intents': 'trade',
  'POST /agents/{agentId}/reduce-intents': 'close',
  'POST /agents/{agentId}/exit-ladder-intents': 'set_ladder',
  'POST /agents/{agentId}/stop': 'stop',
}

/** Returns the remedy of a failure in the words of a model: tools in place of commands and endpoints. */
export function toolRemedy({ facts: { code, remedy } }: Failure): string | undefined {
  const known = code !== undefined && Object.hasOwn(toolRemedies, code) ? toolRemedies[code] : remedy
  return known?.replace(/\b(?:GET|POST|PUT) \/[\w/{}-]*/g, text => localToolOf[text] ?? toolOf.get(text) ?? text)
}
