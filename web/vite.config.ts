import { join } from 'node:path'
import { defaultClientConditions, defineConfig, type Plugin } from 'vite'

// Builds the pages into public/app, which the Worker serves under /app: run `npm run build:web`.

/** Leaves parts of viem out of the client; see data/less-viem.ts. */
const lessViem: Plugin = {
  name: 'client-with-less-viem',
  enforce: 'pre',
  resolveId: (source, importer) =>
    source === 'viem' && /packages\/client\/src\/(chain|account)\.ts$/.test(importer ?? '')
      ? join(import.meta.dirname, 'src/data/less-viem.ts')
      : undefined,
}

export default defineConfig({
  root: import.meta.dirname,
  base: '/app/',
  plugins: [lessViem],
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
