import { rehearsalOperations } from '../operations/advance-market.ts'
import { waitForEvent, whoami } from '../operations/agent-tools.ts'
import { operations } from '../operations/index.ts'
import type { JsonOperation, Operation, ToolDefinition } from '../operations/operation.ts'

export type ToolOperation = JsonOperation & { tool: ToolDefinition }

/** The operations that are tools, in the order of the list. */
export const toolOperations = [
  ...(operations as readonly Operation[]),
  whoami,
  waitForEvent,
  ...rehearsalOperations,
].filter((operation): operation is ToolOperation => operation.kind === 'json' && operation.tool !== undefined)
