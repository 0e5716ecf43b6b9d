import { join } from 'node:path'
import { defaultClientConditions, defineConfig, type Plugin } from 'vite'

// Builds the pages into public/app, which the Worker serves under /app: run `npm run build:web`.

/** Leaves the transport to a node out of the client; see data/no-rpc.ts. */
const withoutRpc: Plugin = {
  name: 'client-without-rpc',
  enforce: 'pre',
  resolveId: (source, importer) =>
    source === 'viem' && importer?.endsWith('packages/client/src/chain.ts')
      ? join(import.meta.dirname, 'src/data/no-rpc.ts')
      : undefined,
}

export default defineConfig({
  root: import.meta.dirname,
  base: '/app/',
  plugins: [withoutRpc],
  resolve: { conditions: ['@agent-trading-service/source', ...defaultClientConditions] },
  build: {
    outDir: process.env.WEB_OUT_DIR ?? join(import.meta.dirname, '../public/app'),
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows no data: URLs
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    target: 'es2023',
  },
})
