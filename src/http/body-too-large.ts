import { refuse } from '../errors/refuse.ts'

export const MAX_BODY_BYTES = 100 * 1024

/** Returns the refusal of a body with more than MAX_BODY_BYTES. */
export const bodyTooLarge = () => refuse('BODY_TOO_LARGE', { limitBytes: MAX_BODY_BYTES })
