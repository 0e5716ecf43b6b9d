import type { Context } from '../context.ts'

/** The variables of a request. */
export type AppEnv = { Variables: { requestId: string; context: Context } }
