import { cpSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

// Copies Swagger UI next to public/docs/index.html, so that /docs needs no other host.
// Wrangler runs this before it serves or deploys the Worker.
const from = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
const to = join(import.meta.dirname, '../public/docs')
for (const file of ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'])
  cpSync(join(from, file), join(to, file))
