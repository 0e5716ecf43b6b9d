import { defineConfig, type UserConfig } from 'tsdown'
import { placeCommentsIn } from './build/place-comments.ts'

const build: UserConfig = {
  clean: true,
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  // The rules of the protocol are not published on their own, so their types are part of this package.
  dts: { eager: true, resolve: [/^@agent-trading-service\/protocol\//] },
  // Editors read comments in the declarations; in the code they would only be loaded.
  outputOptions: options => ({ ...options, comments: false }),
  hooks: { 'build:done': ({ options }) => placeCommentsIn(options.outDir) },
}

export default defineConfig([
  { ...build, entry: ['src/index.ts', 'src/pay.ts'] },
  // On its own, so that the main entry shares no file with it.
  { ...build, entry: ['src/erc7730.ts'], outDir: 'dist/erc7730' },
])
