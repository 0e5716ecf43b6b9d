import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

// `npm run rehearse:examples`: rehearses the agents of examples/ and writes their reports to
// docs/rehearsal-examples.md. The same sources give the same page.

const SOURCE = '--conditions=@agent-trading-service/source'
const root = join(import.meta.dirname, '..')
const rehearsals = [
  { title: 'Momentum', file: 'momentum.ts', market: 'trend' },
  { title: 'Mean reversion', file: 'mean-reversion.ts', market: 'gbm' },
  { title: 'A scripted model over MCP', file: 'mcp-rehearsal.ts', market: 'crash' },
]
const DAYS = '15'

const sections = []
for (const { title, file, market } of rehearsals) {
  const shown = ['--market', market, '--days', DAYS, '--seed', '7', '--', 'node', SOURCE, `examples/${file}`]
  const { stdout } = await promisify(execFile)('node', [SOURCE, 'scripts/rehearse.ts', ...shown], { cwd: root })
  sections.push(
    `## ${title}\n\nThe agent is [\`examples/${file}\`](../examples/${file}).\n\n\`\`\`text\n$ npx ats rehearse ${shown.join(' ')}\n${stdout.trimEnd()}\n\`\`\`\n`,
  )
  console.log(`${file} is rehearsed`)
}
writeFileSync(
  join(root, 'docs/rehearsal-examples.md'),
  `# Rehearsals of the examples

\`npm run rehearse:examples\` writes this page. [rehearsal.md](rehearsal.md) explains the figures; \`--report\` draws them.

${sections.join('\n')}`,
)
