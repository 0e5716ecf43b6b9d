import type { Refusal } from './refusal.ts'

const MAX_FRAMES = 8

/**
 * Logs a refusal that is not the caller's fault. Of its cause only the class and the stack frames are logged, because
 * messages can contain RPC URLs, and with them keys.
 */
export function logRefusal({ status, body, cause }: Refusal, request: { requestId: string; path: string }): void {
  const failure = cause instanceof Error && { cause: cause.name, frames: framesOf(cause) }
  console.error(JSON.stringify({ level: 'error', ...request, status, code: body.code, ...failure }))
}

const framesOf = ({ stack = '' }: Error) =>
  stack
    .split('\n')
    .filter(line => /^\s+at /.test(line))
    .slice(0, MAX_FRAMES)
