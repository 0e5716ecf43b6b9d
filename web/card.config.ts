import { join } from 'node:path'
import { defaultClientConditions, defineConfig, type Plugin } from 'vite'

// Builds the card of MCP Apps as one file, because hosts load a document and nothing else.

const oneFile: Plugin = {
  name: 'card-in-one-file',
  enforce: 'post',
  generateBundle(_, bundle) {
    const files = Object.values(bundle)
    const script = files.flatMap(file => (file.type === 'chunk' ? [file.code] : [])).join('\n')
    const style = files.flatMap(file => (file.fileName.endsWith('.css') ? ['source' in file ? file.source : ''] : []))
    for (const { fileName } of files) delete bundle[fileName]
    const head = `<meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>Agent Trading Service</title>`
    // Fonts are files of their own; the system's are good enough.
    const styles = style.join('').replaceAll(/@font-face\s*\{[^}]*\}/g, '')
    const source = `<!doctype html><html lang="en"><head>${head}<style>${styles}</style></head><body><script type="module">${script.replaceAll('</', '<\\/')}</script></body></html>`
    this.emitFile({ type: 'asset', fileName: 'card.html', source })
  },
}

export default defineConfig({
  root: import.meta.dirname,
  publicDir: false,
  resolve: { conditions: ['@agent-trading-service/source', ...defaultClientConditions] },
  plugins: [oneFile],
  build: {
    outDir: process.env.WEB_OUT_DIR ?? join(import.meta.dirname, '../public/app'),
    emptyOutDir: false,
    target: 'es2023',
    rolldownOptions: {
      input: ['src/card.tsx', 'src/styles/card.css'].map(file => join(import.meta.dirname, file)),
      // The parts of pages stand next to others that read from the service, which a card cannot.
      treeshake: { moduleSideEffects: id => /card\.tsx$|\.css$/.test(id) },
    },
  },
})
