import type { Failure, FailureKind } from '../failure.ts'

// The same failure reaches a person as a command, and a model as a tool.

const ASK_USER = 'Ask the user to'
const RESTART = 'then start this server again'

/** What only a person at this machine can mend. */
const OF_THIS_MACHINE: readonly FailureKind[] = ['key', 'limits', 'mismatch']

/** What a model can do, by the code of a failure whose remedy is a command. */
const toolRemedies: Record<string, string> = {
  READ_ONLY: `${ASK_USER} add \`--allow trade\` to the arguments of this server, ${RESTART}.`,
  KEY_NOT_FOUND: `${ASK_USER} create a key with \`ats key new\`, or to name one of the keys as ATS_KEY in the environment of this server. Reads work without.`,
  KEY_FILE_INVALID: `${ASK_USER} repair or remove the named file.`,
  PASSWORD_MISSING: `${ASK_USER} set ATS_PASSWORD_FILE in the environment of this server, ${RESTART}. Never ask for the password itself.`,
  WRONG_PASSWORD: `${ASK_USER} correct the file that ATS_PASSWORD_FILE names, ${RESTART}. Never ask for the password itself.`,
  AGENT_MISSING: 'Pass agentId. svc_list_agents_by_owner lists the agents of an owner; `register` creates one.',
  FEE_TOO_HIGH: `${ASK_USER} allow it with \`--max-fee\` in the arguments of this server.`,
  FEE_VALID_TOO_LONG: `${ASK_USER} ask the operator of the service.`,
  NOT_PENDING: 'Call `resume` without a digest for all of them; svc_get_intent shows one that the service knows.',
  PENDING_DAMAGED: `Call svc_get_intent with the digest; then ${ASK_USER.toLowerCase()} delete the file.`,
  WRONG_ACCOUNT: `${ASK_USER} name the key of that address as ATS_KEY in the environment of this server.`,
  URL_OF_A_NODE: `${ASK_USER} set ATS_URL of this server to the URL of the service.`,
  NETWORK_ERROR:
    'Try again in a moment: trades, closes and stops need the service. The tool `resume` finds the outcome of a trade that was already posted.',
}

/** Returns the remedy of a failure in the words of a model. */
export function toolRemedy({ kind, facts: { code, remedy } }: Failure): string | undefined {
  if (code !== undefined && Object.hasOwn(toolRemedies, code)) return toolRemedies[code]
  if (typeof remedy !== 'string') return remedy?.tool
  return OF_THIS_MACHINE.includes(kind) && !/\bthe user\b/.test(remedy) ? `Tell the user: ${remedy}` : remedy
}
