import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { escapeHtml } from '../reference/build/html.ts'

/** The styles of the pages under /app, so that the report looks like them. */
const STYLES = ['theme', 'base', 'parts', 'chart', 'narrow'].map(name => `../web/src/styles/${name}.css`)
const OWN_STYLE = join(import.meta.dirname, 'report.css')

/** Browsers load nothing else: the page has its styles, no fonts and no scripts. */
const readStyles = (): string =>
  [...STYLES.map(path => join(import.meta.dirname, path)), OWN_STYLE]
    .map(path => readFileSync(path, 'utf8'))
    .join('\n')
    .replace(/@font-face\s*\{[^}]*\}/g, '')

/** Returns one HTML page that loads nothing from elsewhere. */
export const pageHtml = (
  { title, kicker, fine }: { title: string; kicker: string; fine: string },
  body: string,
): string =>
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title>
<style>
${readStyles()}</style>
</head>
<body>
<main class="report stack">
<header><p class="kicker">${escapeHtml(kicker)}</p><h1>${escapeHtml(title).replaceAll('/', '/<wbr>')}</h1>
<p class="fine">${escapeHtml(fine)}</p></header>
${body}
</main>
</body>
</html>
`

export const panel = (title: string, body: string) =>
  `<section class="panel"><header><h2>${title}</h2></header><div class="body">${body}</div></section>`

export const facts = (rows: [string, string][]) =>
  `<dl class="figure-list">${rows.map(([name, value]) => `<div><dt>${escapeHtml(name)}</dt><dd class="num">${escapeHtml(value.replaceAll(' %', '\u00a0%'))}</dd></div>`).join('')}</dl>`

/** Returns a table whose cells are HTML; columns from `firstNumber` on are figures. */
export function table(titles: string[], rows: string[][], firstNumber: number): string {
  const cell = (tag: 'th' | 'td') => (html: string, column: number) =>
    `<${tag}${column >= firstNumber ? ' class="num right"' : ''}>${html}</${tag}>`
  const lines = rows.map(row => `<tr>${row.map(cell('td')).join('')}</tr>`)
  return `<div class="scroll" tabindex="0" role="region" aria-label="Table"><table><thead><tr>${titles.map(cell('th')).join('')}</tr></thead><tbody>${lines.join('')}</tbody></table></div>`
}
