import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { Failure, type FailureFacts, type FailureKind } from '../../packages/cli/src/failure.ts'
import { readTools } from '../../packages/cli/src/generated/read-tools.ts'
import { listedLocalTools, localTools } from '../../packages/cli/src/mcp/local-tools.ts'
import { onlyOffered, toolsNamedIn } from '../../packages/cli/src/mcp/offered-texts.ts'
import { toolRemedy } from '../../packages/cli/src/mcp/tool-remedies.ts'
import { serviceRemedy } from '../../packages/cli/src/output/service-remedy.ts'
import { errorCodes } from '../../src/errors/catalogue.ts'

// Remedies of the service, as `ats` says them to a person and `ats mcp` to a model.

const REQUESTS =
  /\b(GET|POST|PUT) \/|\bheaders?\b|\bbod(y|ies)\b|\bSend (a|the)\b|the quote's|[Ff]resh quote and|`accepts`|\/docs|\/health|eth_sign/
const COMMANDS = /`ats |(^|[\s`])--\w/

it('every remedy speaks of commands to a person and of tools to a model, and of requests to neither', () => {
  const wrong = errorCodes.filter(({ code, remedy }) => {
    const { command, tool } = serviceRemedy(code, remedy) as { command: string; tool: string }
    return REQUESTS.test(`${command} ${tool}`) || COMMANDS.test(tool) || /svc_|\btool\b/.test(command)
  })
  expect(wrong).toEqual([])
})

it('what only a person can mend is told to the user by a model', () => {
  const remedyOf = (kind: FailureKind, facts: FailureFacts) => toolRemedy(new Failure(kind, 'No.', facts))
  expect(remedyOf('key', { code: 'MODE_TOO_WIDE', remedy: 'Run `chmod 600 key`.' })).toBe(
    'Tell the user: Run `chmod 600 key`.',
  )
  expect(remedyOf('key', { code: 'WRONG_PASSWORD', remedy: 'Check --password-file.' })).toMatch(
    /^Ask the user to correct/,
  )
  expect(remedyOf('usage', { code: 'POSITION_NOT_FOUND', remedy: 'Pass an id.' })).toBe('Pass an id.')
})

it('a remedy names commands and tools in place of endpoints', () => {
  expect(serviceRemedy('UNKNOWN_SYMBOL', 'GET /tokens lists the symbols.')).toEqual({
    command: '`ats tokens` lists the symbols.',
    tool: '`svc_list_tokens` lists the symbols.',
  })
  expect(serviceRemedy('POSITION_ALREADY_OPEN', 'Add to it with POST /agents/{agentId}/add-intents.')).toEqual({
    command: 'Add to it with `ats add`.',
    tool: 'Add to it with `trade`.',
  })
})

it('the skill of the package names only tools that `ats mcp` has', () => {
  const skill = readFileSync('packages/cli/skills/ats/SKILL.md', 'utf8')
  const known = new Set([
    ...Object.keys(localTools),
    ...Object.values(readTools)
      .flat()
      .map(({ name }) => name),
  ])
  const named = toolsNamedIn(skill, name => known.has(name))
  expect(named.length).toBeGreaterThan(15)
  expect(named.filter(name => !known.has(name))).toEqual([])
})

it('a remedy names only tools that are offered', () => {
  const isLocal = (name: string) => Object.hasOwn(localTools, name)
  const reads = Object.values(readTools).flat()
  const offered = new Set([...listedLocalTools(['read']), ...reads].map(({ name }) => name))
  for (const { code, remedy } of errorCodes) {
    const { tool } = serviceRemedy(code, remedy) as { tool: string }
    const known = new Set([...offered, ...Object.keys(localTools)])
    expect(
      toolsNamedIn(tool, isLocal).filter(name => !known.has(name)),
      code,
    ).toEqual([])
    expect(toolsNamedIn(onlyOffered(tool, isLocal, offered), isLocal).filter(name => !offered.has(name))).toEqual([])
  }
  const { tool } = serviceRemedy('AGENT_NOT_FOUND', undefined) as { tool: string }
  expect(onlyOffered(tool, isLocal, offered)).toBe('svc_list_agents_by_owner lists the agents of an owner.')
  expect(onlyOffered(tool, isLocal, new Set(['register']))).toBe('`register` creates one.')
})
