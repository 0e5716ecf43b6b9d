import type { Call } from '../call.ts'
import type { Context } from '../context.ts'
import type { Admission } from './admission.ts'

/** The variables of a request. */
export type AppEnv = {
  Variables: { requestId: string; context: Context; call: Call; admission?: Admission | undefined }
}
