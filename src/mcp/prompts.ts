import { type GetPromptResult, type Prompt, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { prompts } from '../operations/prompts.ts'
import { namingTools } from './replace-endpoints-with-tools.ts'

export const listedPrompts: Prompt[] = Object.entries(prompts).map(([name, prompt]) => ({
  name,
  title: prompt.title,
  description: prompt.description,
  arguments: Object.entries(prompt.arguments).map(([name, argument]) => ({ name, ...argument })),
}))

/** Renders a prompt with its arguments. Throws a protocol error for an unknown prompt or a missing argument. */
export function getPrompt(name: string, given: Record<string, string> = {}): GetPromptResult {
  const prompt = Object.hasOwn(prompts, name) ? prompts[name] : undefined
  if (prompt === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no prompt ${name}`)
  const missing = Object.entries(prompt.arguments).find(([name, { required }]) => required && !given[name])
  if (missing) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The argument ${missing[0]} is missing`)
  return {
    description: prompt.description,
    messages: [{ role: 'user', content: { type: 'text', text: namingTools(prompt.text(given)) } }],
  }
}
