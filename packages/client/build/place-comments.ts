import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

/** Puts the comments of every declaration file in a folder where an editor finds them. */
export function placeCommentsIn(folder: string): void {
  for (const file of readdirSync(folder).filter(name => name.endsWith('.d.ts'))) {
    const path = join(folder, file)
    writeFileSync(path, placeComments(readFileSync(path, 'utf8')))
  }
}

/**
 * Moves each comment that documents a declaration from the end of the line before it, where the bundler leaves it and
 * where it belongs to nothing, to a line of its own.
 */
export function placeComments(text: string): string {
  const source = ts.createSourceFile('index.d.ts', text, ts.ScriptTarget.Latest, false)
  /** The indentation of the declaration, by the start of its comment. */
  const misplaced = new Map<number, string>()
  const visit = (node: ts.Node) => {
    for (const { pos } of ts.getTrailingCommentRanges(text, node.pos) ?? [])
      if (text.startsWith('/**', pos)) misplaced.set(pos, indentationAt(text, node.getStart(source)))
    ts.forEachChild(node, visit)
  }
  visit(source)
  let placed = ''
  let copied = 0
  for (const [start, indentation] of [...misplaced].sort(([a], [b]) => a - b)) {
    placed += `${text.slice(copied, start).trimEnd()}\n${indentation}`
    copied = start
  }
  return placed + text.slice(copied)
}

function indentationAt(text: string, position: number): string {
  const line = text.slice(text.lastIndexOf('\n', position - 1) + 1, position)
  return /^\s*/.exec(line)?.[0] ?? ''
}
