import { AgentStatus } from '@agent-trading-service/protocol/enums'
import { z } from 'zod'
import { getAgents, isLinked, getAgent as readAgent, readIdentityRegistry } from '../chain/agents.ts'
import { refuse } from '../errors/refuse.ts'
import type { HistoryContext } from '../history/client.ts'
import {
  feedbackFile,
  presentRegistration,
  REGISTRATION_TYPE,
  registrationFile,
  registrationList,
} from '../resources/erc8004.ts'
import { agentId } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

const MAX_REGISTRATIONS = 200
/** A square in the colors of the pages: the registration file requires an image, and agents have none. */
const IMAGE =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E%3Cpath d='M0 0h8v8H0z' fill='%23123'/%3E%3Cpath d='M1 6l2-3 2 2 2-4' fill='none' stroke='%236d9'/%3E%3C/svg%3E"

export const getAgentRegistrationFile = defineOperation(
  {
    id: 'getAgentRegistrationFile',
    path: '/agents/{agentId}/registration.json',
    tag: 'Agents',
    summary: 'Get the ERC-8004 registration file of an agent',
    description:
      'Returns a registration file (registration-v1) that an ERC-8004 identity can name as its agentURI, and an agent as its metadataURI. `registrations` has the linked identity while the owner of the agent holds it.',
    output: registrationFile,
    errors: [404, 502],
  },
  async ({ chain, config }, { agentId }) => {
    const [{ agent }, identityRegistry] = await Promise.all([readAgent(chain, agentId), readIdentityRegistry(chain)])
    const baseUrl = config.baseUrl ?? ''
    return {
      type: REGISTRATION_TYPE,
      name: agent.name,
      description: `Agent ${agentId} of the vault ${agent.vault} on chain ${chain.id}. Its trades, equity and rank are public.`,
      image: IMAGE,
      services: [
        { name: 'web', endpoint: `${baseUrl}/agents/${agentId}` },
        { name: 'MCP', endpoint: `${baseUrl}/mcp`, version: '2025-11-25' },
      ],
      x402Support: false,
      active: agent.status === AgentStatus.Active,
      registrations: isLinked(agent) ? [presentRegistration(chain.id, identityRegistry, agent.erc8004AgentId)] : [],
      supportedTrust: ['reputation'],
    }
  },
)

export const getRegistrations = defineOperation(
  {
    id: 'getErc8004Registrations',
    path: '/.well-known/agent-registration.json',
    tag: 'Agents',
    summary: 'List the ERC-8004 identities of the agents here',
    description:
      'Returns the identities whose registration files this domain serves, so that ERC-8004 clients can verify that the domain vouches for them. An identity that its owner gave away is left out.',
    output: registrationList,
    errors: [502],
  },
  async ({ chain, history }: HistoryContext) => {
    const [ids, identityRegistry] = await Promise.all([
      history.feedback.findLinkedAgents(MAX_REGISTRATIONS),
      readIdentityRegistry(chain),
    ])
    const { agents } = await getAgents(chain, ids)
    return {
      registrations: agents
        .filter(({ agent }) => isLinked(agent))
        .map(({ agent }) => presentRegistration(chain.id, identityRegistry, agent.erc8004AgentId)),
    }
  },
)

const weekStart = z
  .string()
  .regex(/^[0-9]{1,10}$/, 'must be Unix seconds')
  .transform(Number)
  .meta({ description: 'First second of the week, a Monday in UTC', example: '1753660800' })

export const getFeedbackFile = defineOperation(
  {
    id: 'getFeedbackFile',
    path: '/agents/{agentId}/feedback/{weekStart}',
    tag: 'Agents',
    summary: 'Get the ERC-8004 feedback file about a week',
    description:
      "Returns the immutable file that the reporter's feedback (`tradingYield`, `week`) in the ERC-8004 reputation registry names. Its keccak256, over the bytes of this response, is the `feedbackHash` on chain.",
    params: z.object({ agentId, weekStart }),
    output: feedbackFile,
    errors: [404],
  },
  async ({ history }: HistoryContext, { agentId, weekStart }) => {
    const content = await history.feedback.read(agentId, weekStart)
    if (content === undefined) throw refuse('FEEDBACK_NOT_FOUND', { agentId, weekStart })
    return JSON.parse(content) as z.input<typeof feedbackFile>
  },
)
