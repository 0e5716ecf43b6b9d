import type { Config } from '../config/config.ts'
import { waitForEvent, whoami } from '../operations/agent-tools.ts'
import { operations, rehearsalOperations } from '../operations/index.ts'
import type { JsonOperation, Operation } from '../operations/operation.ts'
import type { ToolDefinition } from '../operations/operation-definition.ts'

export type ToolOperation = JsonOperation & { tool: ToolDefinition }

const isTool = (operation: Operation): operation is ToolOperation =>
  operation.kind === 'json' && operation.tool !== undefined

/** The operations that are tools, in the order of the list. */
export const toolOperations = [...(operations as readonly Operation[]), whoami, waitForEvent].filter(isTool)
/** The tools that only a rehearsal serves. */
export const rehearsalTools = rehearsalOperations.filter(isTool)

/** Returns the tools that a deployment serves. */
export const toolsOf = ({ rehearsalUrl }: Pick<Config, 'rehearsalUrl'>): readonly ToolOperation[] =>
  rehearsalUrl === undefined ? toolOperations : [...toolOperations, ...rehearsalTools]
