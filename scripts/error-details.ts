import { createRequire } from 'node:module'
import { join } from 'node:path'
import type ts from '../packages/client/node_modules/typescript/lib/typescript.js'

const root = join(import.meta.dirname, '..')
// The compiler API, which TypeScript 7 does not have yet.
const compiler = createRequire(join(root, 'packages/client/package.json'))('typescript') as typeof ts

const FORMAT =
  compiler.TypeFormatFlags.NoTruncation |
  compiler.TypeFormatFlags.UseSingleQuotesForStringLiteralType |
  compiler.TypeFormatFlags.InTypeAlias

/** Returns, by error code, the type of `details` on the wire as TypeScript; undefined for a code without details. */
export function readErrorDetails(): Map<string, string | undefined> {
  const file = join(root, 'src/errors/catalogue.ts')
  const program = compiler.createProgram([file], {
    strict: true,
    noEmit: true,
    target: compiler.ScriptTarget.ES2022,
    module: compiler.ModuleKind.ESNext,
    moduleResolution: compiler.ModuleResolutionKind.Bundler,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    types: [],
  })
  const checker = program.getTypeChecker()
  const source = program.getSourceFile(file)
  const module = source && checker.getSymbolAtLocation(source)
  const rows = module && checker.getExportsOfModule(module).find(({ name }) => name === 'errorRows')
  if (!source || !rows) throw new Error(`${file} does not export errorRows.`)
  const details = new Map<string, string | undefined>()
  for (const row of checker.getTypeOfSymbol(rows).getProperties()) {
    const [facts] = checker.getTypeOfSymbolAtLocation(row, source).aliasTypeArguments ?? []
    if (!facts) throw new Error(`The error ${row.name} is not declared with row().`)
    details.set(row.name, printFacts(checker, facts, source))
  }
  return details
}

function printFacts(checker: ts.TypeChecker, facts: ts.Type, at: ts.Node): string | undefined {
  const fields = facts.getProperties().map(field => {
    const type = checker.getTypeOfSymbolAtLocation(field, at)
    const isOptional = (field.flags & compiler.SymbolFlags.Optional) !== 0 || canBeUndefined(type)
    return `${field.name}${isOptional ? '?' : ''}: ${onWire(checker.typeToString(type, at, FORMAT))}`
  })
  const index = checker.getIndexInfoOfType(facts, compiler.IndexKind.String)
  if (index && (index.type.flags & compiler.TypeFlags.Never) === 0) fields.push('[name: string]: unknown')
  return fields.length === 0 ? undefined : `{ ${fields.join('; ')} }`
}

const canBeUndefined = (type: ts.Type) =>
  type.isUnion() && type.types.some(({ flags }) => (flags & compiler.TypeFlags.Undefined) !== 0)

const TEMPLATE = '`0x$${string}`'

/** Returns the printed type of a fact as it is in JSON, where a bigint is a string of digits. */
const onWire = (type: string) =>
  type
    .replaceAll(/import\("[^"]*"\)\./g, '')
    .replaceAll(/ \| undefined|undefined \| /g, '')
    .replaceAll(/\bbigint\b/g, 'string')
    .replaceAll(/\b(Hex|Address)\b/g, TEMPLATE)
