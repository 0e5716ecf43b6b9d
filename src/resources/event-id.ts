import { z } from 'zod'
import { isEventId } from '../live/event-id.ts'

/** The id of a stream event, to resume after it. */
export const eventId = z
  .string()
  .refine(isEventId, 'must be the id of an event, such as 1234-5')
  .meta({ example: '1234-5' })
