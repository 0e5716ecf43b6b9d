// Stands for `cloudflare:workers` where Node loads modules of the Worker without running their Durable Objects.
export class DurableObject {}
export class WorkerEntrypoint {}
export class RpcTarget {}
export const env = {}
export const waitUntil = () => {}
export const tracing = { getActiveSpan: () => undefined }
