import { escapeHtml, Html } from './html.ts'

/** Returns the page of what a piece of inline code names, such as `GET /vaults` or an error code. */
export type LinkOf = (code: string) => string | undefined

const slugOf = (title: string) =>
  title
    .toLowerCase()
    .replace(/[^\w]+/g, '-')
    .replace(/^-|-$/g, '')

/**
 * Renders the Markdown of the guides and descriptions: headings, paragraphs, lists of one level, tables, fenced code,
 * inline code, bold text and links. Inline code that names an operation or an error links to it.
 */
export function markdown(source: string, linkOf: LinkOf): Html {
  const inline = (text: string) => inlineMarkdown(text, linkOf)
  const out: string[] = []
  const lines = source.split('\n')
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? ''
    const takeWhile = (pattern: RegExp) => {
      const taken: string[] = []
      while (at < lines.length && pattern.test(lines[at] ?? '')) taken.push(lines[at++] ?? '')
      return taken
    }
    if (line.trim() === '') at++
    else if (line.startsWith('```')) {
      const language = line.slice(3).trim()
      at++
      const code = takeWhile(/^(?!```)/)
      at++
      out.push(
        `<section class="sample"><button type="button" data-copy>Copy</button><pre tabindex="0" aria-label="${escapeHtml(language || 'Code')}"><code>${escapeHtml(code.join('\n'))}</code></pre></section>`,
      )
    } else if (/^#{1,4} /.test(line)) {
      const [, marks = '', title = ''] = /^(#+) (.*)$/.exec(line) ?? []
      out.push(`<h${marks.length} id="${slugOf(title)}">${inline(title)}</h${marks.length}>`)
      at++
    } else if (line.startsWith('|')) out.push(table(takeWhile(/^\|/), inline))
    else if (/^(- |\d+\. )/.test(line)) {
      const tag = line.startsWith('- ') ? 'ul' : 'ol'
      const items = takeWhile(/^(- |\d+\. | {2,}\S)/).reduce<string[]>((all, item) => {
        if (item.startsWith(' ')) all.push(`${all.pop()} ${item.trim()}`)
        else all.push(item.replace(/^(- |\d+\. )/, ''))
        return all
      }, [])
      out.push(`<${tag}>${items.map(item => `<li>${inline(item)}</li>`).join('')}</${tag}>`)
    } else out.push(`<p>${inline(takeWhile(/^(?!\||```|#{1,4} |- |\d+\. )\s*\S/).join(' '))}</p>`)
  }
  return new Html(out.join('\n'))
}

function table(rows: string[], inline: (text: string) => string): string {
  const cells = (row: string) =>
    row
      .slice(1, row.trimEnd().length - 1)
      .split('|')
      .map(cell => inline(cell.trim()))
  const [head = '', , ...body] = rows
  const row = (tag: string, values: string[]) =>
    `<tr>${values.map(value => `<${tag}${tag === 'th' ? ' scope="col"' : ''}>${value}</${tag}>`).join('')}</tr>`
  return `<div class="scroll" tabindex="0" role="region" aria-label="Table"><table><thead>${row('th', cells(head))}</thead><tbody>${body
    .map(line => row('td', cells(line)))
    .join('')}</tbody></table></div>`
}

/** Renders inline code, bold text and links. */
export function inlineMarkdown(text: string, linkOf: LinkOf): string {
  return text
    .split(/(`[^`]+`)/)
    .map(part => {
      if (part.startsWith('`') && part.length > 2) {
        const code = part.slice(1, -1)
        const href = linkOf(code)
        const element = `<code>${escapeHtml(code)}</code>`
        return href === undefined ? element : `<a href="${escapeHtml(href)}">${element}</a>`
      }
      return escapeHtml(part)
        .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
        .replace(/\[([^\]]+)\]\(([^)]+)\)/g, (_, label, href) => `<a href="${href}">${label}</a>`)
    })
    .join('')
}
