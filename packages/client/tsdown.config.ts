import { defineConfig } from 'tsdown'
import { placeCommentsIn } from './build/place-comments.ts'

export default defineConfig({
  entry: ['src/index.ts', 'src/pay.ts', 'src/erc7730.ts'],
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  // The rules of the protocol are not published on their own, so their types are part of this package.
  dts: { eager: true, resolve: [/^@agent-trading-service\/protocol\//] },
  clean: true,
  // Editors read comments in the declarations; in the code they would only be loaded.
  outputOptions: options => ({ ...options, comments: false }),
  hooks: { 'build:done': ({ options }) => placeCommentsIn(options.outDir) },
})
