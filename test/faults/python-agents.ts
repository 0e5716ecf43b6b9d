import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { intentOf, recordResponse } from './client-agents.ts'
import { type AgentWorld, rememberBody, SYMBOLS } from './clients.ts'
import type { SignedIntent } from './violations.ts'

const folder = join(import.meta.dirname, '../../packages/python')

/**
 * Simulates an agent on the Python client: a process of `PYTHON`, in which the client is installed. Its requests pass
 * through a server here, which compares responses with what was signed.
 */
export async function runPythonAgent(
  world: AgentWorld,
  { seed, index, intents }: { seed: number; index: number; intents: number },
): Promise<void> {
  const signed = new Map<string, SignedIntent>()
  let hasRegistered = false
  const onRegistered = () => {
    if (!hasRegistered) world.onRegistered()
    hasRegistered = true
  }

  /** Notes what the client is about to post. */
  function onSubmission(json: string): void {
    const { goal, ...submission } = JSON.parse(json)
    const { signature } = submission.body
    if (signed.has(signature)) return // resumed
    const intent = intentOf(submission, goal)
    signed.set(signature, intent)
    rememberBody(intent, { method: 'POST', path: submission.path, json: JSON.stringify(submission.body) })
    world.onIntent(intent)
  }

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request
    const body = method === 'POST' ? await text(request) : undefined
    if (url === '/harness/submission') onSubmission(body ?? '')
    if (url === '/harness/registered') onRegistered()
    if (url.startsWith('/harness/')) return void response.end('{}')
    const intent = body === undefined ? undefined : signed.get(JSON.parse(body).signature)
    const headers = { 'content-type': 'application/json', ...minBlockOf(request) }
    const sent = fetch(world.url() + url, { method, headers, redirect: 'manual', ...(body !== undefined && { body }) })
    try {
      const received = await recordResponse(world, intent, sent)
      const content = await received.text()
      response.writeHead(received.status, Object.fromEntries(kept(received.headers))).end(content)
    } catch {
      request.socket.destroy() // as the client would have seen it
    }
  }

  const server = createServer((request, response) => void forward(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  try {
    await runProgram(world, { BASE: `http://127.0.0.1:${port}`, NAME: `${seed}-${index}`, INTENTS: `${intents}` })
  } finally {
    onRegistered()
    server.closeAllConnections()
    server.close()
  }
}

/** Runs the agent's program to its end, or until the run is aborted. */
async function runProgram({ vault, signal }: AgentWorld, variables: Record<string, string>): Promise<void> {
  const program = spawn(process.env.PYTHON || 'python3', ['tests/fault_agent.py'], {
    cwd: folder,
    env: { ...process.env, SYMBOLS: SYMBOLS.join(), VAULT: vault, ...variables },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const stop = () => program.kill()
  signal.addEventListener('abort', stop)
  const [code] = await once(program, 'exit')
  signal.removeEventListener('abort', stop)
  if (code !== 0 && !signal.aborted) throw new Error(`tests/fault_agent.py exited with ${code}.`)
}

const minBlockOf = ({ headers }: IncomingMessage): Record<string, string> =>
  typeof headers['min-block'] === 'string' ? { 'min-block': headers['min-block'] } : {}

/** Returns the headers that the client reads; the others describe the encoding of a body that is decoded here. */
const kept = (headers: Headers) =>
  ['content-type', 'retry-after', 'x-as-of-block', 'x-request-id'].flatMap(name => {
    const value = headers.get(name)
    return value === null ? [] : [[name, value] as const]
  })
