import type { Hex } from 'viem'
import { row } from './error-row.ts'

/** Webhooks that cannot be created, found or reached. */
export const webhookErrors = {
  WEBHOOK_URL_REFUSED: row<{ url: string; problem: string }>({
    status: 400,
    sentence: ({ url, problem }) => `Events cannot be posted to ${url}: ${problem}.`,
    remedy: 'Use an https URL on port 443 whose host has public addresses only.',
  }),
  WEBHOOK_NOT_FOUND: row<{ agentId: bigint; webhookId: Hex }>({
    status: 404,
    sentence: ({ agentId, webhookId }) => `Agent ${agentId} has no webhook ${webhookId} that the signer may see.`,
    remedy:
      'POST /agents/{agentId}/webhooks/list lists the webhooks; only the owner sees and changes those that the owner created.',
  }),
  WEBHOOK_DEADLINE_TOO_FAR: row<{ deadline: bigint; latestDeadline: bigint }>({
    status: 400,
    sentence: ({ deadline, latestDeadline }) =>
      `The deadline is ${deadline}; messages about webhooks may be valid until ${latestDeadline} at most.`,
    remedy: "Sign the quote's suggestedDeadline.",
  }),
  TOO_MANY_WEBHOOKS: row<{ agentId: bigint; max: number }>({
    status: 409,
    sentence: ({ agentId, max }) => `Agent ${agentId} has ${max} webhooks, the maximum.`,
    remedy: 'Delete one of them first; one webhook can have all event types.',
  }),
  TOO_MANY_WEBHOOK_MESSAGES: row<{ agentId: bigint }>({
    status: 429,
    sentence: ({ agentId }) => `Agent ${agentId} sends too many messages about its webhooks, or too many tests.`,
    remedy: 'Wait for retryAfterSeconds.',
    retryable: true,
    retryAfterSeconds: 60,
  }),
  WEBHOOKS_FULL: row({
    status: 503,
    sentence: () => 'This deployment has the maximum number of webhooks.',
    remedy: 'Use an event stream; the operator can raise MAX_WEBHOOKS.',
    level: 'warn',
  }),
  WEBHOOKS_NOT_CONFIGURED: row({
    status: 503,
    sentence: () => 'This deployment delivers no webhooks.',
    remedy: 'Use an event stream: GET /agents/{agentId}/events.',
    toolRemedy: 'Subscribe to a resource instead.',
    level: 'warn',
  }),
  WEBHOOKS_UNAVAILABLE: row({
    status: 503,
    sentence: () => 'The webhooks, or the resolver that checks their hosts, cannot be reached.',
    remedy: 'Try again in a moment; the identical body is executed at most once.',
    retryable: true,
    retryAfterSeconds: 2,
  }),
}
