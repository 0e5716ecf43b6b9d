import { env } from 'cloudflare:workers'
import { parseConfig } from './config.ts'
import { createContext } from './context.ts'
import { createApp } from './http/app.ts'

export { ExecutorLane } from './executor/lane.ts'

const context = createContext(parseConfig({ ...env }), env)
const app = createApp(() => context)

export default { fetch: request => app.fetch(request) } satisfies ExportedHandler<Env>
