import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

/** Reads the code of a section of a Markdown page, by the `###` heading above it; '' is what comes before the first. */
export function readDocumentedCommands(page: string, section: string) {
  const text = readFileSync(join(root, page), 'utf8').split(`\n## ${section}\n`)[1]?.split(/^## /m)[0] ?? ''
  const blocks = text.split(/^### /m).flatMap((part, index) => {
    const heading = index === 0 ? '' : part.slice(0, part.indexOf('\n'))
    return [...part.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(([, language = '', code = '']) => ({
      heading,
      language,
      code,
    }))
  })
  return {
    /** Returns the next block below a heading, each block once. */
    take(heading: string, language = 'sh'): string {
      const index = blocks.findIndex(block => block.heading === heading && block.language === language)
      const [block] = index === -1 ? [] : blocks.splice(index, 1)
      if (block === undefined) throw new Error(`${page} has no more ${language} below "${heading}"`)
      return block.code
    },
    /** Returns the headings of the blocks that were not taken. */
    untaken: () => blocks.map(({ heading }) => heading),
  }
}

/** Returns the commands of a block, without comments; a pipe over several lines is one. */
export const commandsOf = (block: string): string[] =>
  block
    .replaceAll(/ {2,}#.*$/gm, '')
    .replaceAll(/\|\n +/g, '| ')
    .trim()
    .split('\n')
