import type { components } from '../../../packages/client/src/openapi.ts'

/** The responses of the service, by the names of its API description. */
export type Schema = components['schemas']
