/** The recorded examples of one operation: the request that succeeded, and a body for each status and media type. */
export type RecordedOperation = {
  request?: { parameters: Record<string, string>; body?: unknown }
  responses: Record<string, Record<string, unknown>>
}

/** What `npm run examples` records. `errors` has one body for each status, for operations that did not respond with it. */
export type RecordedExamples = { operations: Record<string, RecordedOperation>; errors: Record<string, unknown> }

type DocumentMedia = { example?: unknown }
export type DocumentOperation = {
  operationId?: string
  parameters?: { name: string; schema?: { type?: string | string[] }; example?: unknown }[]
  requestBody?: { content: Record<string, DocumentMedia> }
  responses: Record<string, { content?: Record<string, DocumentMedia> }>
}

/** Fields of a message that expire. */
const DEADLINES = ['deadline', 'suggestedDeadline']

/** Parses recorded examples, with the given deadline in place of the recorded ones, which have passed. */
export const parseRecordedExamples = (text: string, deadline: string): RecordedExamples =>
  JSON.parse(text, (name, value) => (DEADLINES.includes(name) && typeof value === 'string' ? deadline : value))

/** Adds the recorded examples to an operation of the OpenAPI document. */
export function addExamples(described: DocumentOperation, { operations, errors }: RecordedExamples): void {
  const { request, responses = {} } = operations[described.operationId ?? ''] ?? {}
  for (const parameter of described.parameters ?? []) {
    const recorded = request?.parameters[parameter.name]
    const isNumber = [parameter.schema?.type].flat().some(type => type === 'integer' || type === 'number')
    if (recorded !== undefined) parameter.example = isNumber ? Number(recorded) : recorded
  }
  for (const media of Object.values(described.requestBody?.content ?? {}))
    if (request?.body !== undefined) media.example = request.body
  for (const [status, { content = {} }] of Object.entries(described.responses))
    for (const [mediaType, media] of Object.entries(content)) {
      const example = responses[status]?.[mediaType] ?? (Number(status) >= 400 ? errors[status] : undefined)
      if (example !== undefined) media.example = example
    }
}
