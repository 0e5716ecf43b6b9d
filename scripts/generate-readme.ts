import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeGenerated } from './generated-file.ts'
import { variables } from './variables.ts'

// Writes README's table of configuration between its markers; --check writes nothing and exits 1 when it differs.
const file = join(import.meta.dirname, '../README.md')
const [start, end] = ['<!-- configuration -->\n', '<!-- /configuration -->']

const cell = (name: string, secret?: true) => `\`${name}\`${secret ? ' (secret)' : ''}`
const rows = variables.map(
  variable =>
    `| ${cell(variable.name, variable.secret)} | ${variable.group} | ${variable.meaning} | ${variable.default ?? ''} |`,
)
const table = ['| variable | for | meaning | default |', '|---|---|---|---|', ...rows, ''].join('\n')

const readme = readFileSync(file, 'utf8')
const [before, rest] = readme.split(start)
const [, after] = rest?.split(end) ?? []
if (before === undefined || after === undefined) throw new Error('README.md has lost its markers of the configuration')
const fresh = `${before}${start}${table}${end}${after}`
writeGenerated(file, fresh, 'readme')
