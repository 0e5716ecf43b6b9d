import { join } from 'node:path'
import { defaultClientConditions, defineConfig } from 'vite'

// Builds the pages into public/app, which the Worker serves under /app: run `npm run build:web`.
export default defineConfig({
  root: import.meta.dirname,
  base: '/app/',
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
