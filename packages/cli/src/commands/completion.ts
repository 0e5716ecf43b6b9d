import { Argument, type Command } from 'commander'
import type { WordKind } from './complete.ts'
import { createCommand } from './options.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/**
 * The words that may follow a command, such as `key` or `key new`; the program itself has the empty path. `values` are
 * those that may follow an option. Words of a kind are looked up when they are completed.
 */
type Choices = {
  path: string
  words: { word: string; description: string }[]
  kinds: WordKind[]
  values: { option: string; words: readonly string[]; kind: WordKind | undefined }[]
}

const kindsOfArguments: Record<string, WordKind> = { symbol: 'symbols', position: 'positions' }
const kindsOfOptions: Record<string, WordKind> = { '--key': 'keys', '--payer': 'keys' }

/** `ats completion`: prints a script that completes commands and options. */
export function completionCommand(): Command {
  return createCommand('completion', 'print a completion script for a shell', 'source <(ats completion bash)')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action((shell: Shell, _options: unknown, command: Command) => {
      const program = command.parent ?? command
      process.stdout.write(`${scripts[shell](choicesOf(program))}\n`)
    })
}

function choicesOf(command: Command, path: string[] = []): Choices[] {
  const help = command.createHelp()
  const commands = help.visibleCommands(command).filter(({ parent }) => parent === command)
  const options = help
    .visibleOptions(command)
    .flatMap(({ long, description }) => (long ? [{ word: long, description }] : []))
  const given = command.registeredArguments
  const named = given.flatMap(({ argChoices = [], description }) => argChoices.map(word => ({ word, description })))
  const words = [
    ...commands.map(each => ({ word: each.name(), description: each.description() })),
    ...named,
    ...options,
  ]
  const kinds = given.flatMap(argument => kindsOfArguments[argument.name()] ?? [])
  const values = command.options.flatMap(({ long, argChoices = [] }) => {
    const kind = long ? kindsOfOptions[long] : undefined
    return long && (argChoices.length > 0 || kind) ? [{ option: long, words: argChoices, kind }] : []
  })
  return [
    { path: path.join(' '), words, kinds, values },
    ...commands.flatMap(each => choicesOf(each, [...path, each.name()])),
  ]
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

const scripts: Record<Shell, (choices: Choices[]) => string> = {
  bash: choices => `_ats() {
  local word=\${COMP_WORDS[COMP_CWORD]} path='' each
  for each in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$each" in
${pathsPattern(choices, 6)}) path="\${path:+$path }$each" ;;
    esac
  done
  case "$path \${COMP_WORDS[COMP_CWORD-1]}" in
${valuesOf(choices)
  .map(({ pattern, list }) => `    ${pattern}) COMPREPLY=($(compgen -W ${list} -- "$word")); return ;;`)
  .join('\n')}
  esac
  case "$path" in
${choices
  .map(
    ({ path, words, kinds }) =>
      `    ${quoted(path)}) COMPREPLY=($(compgen -W ${listOf(
        words.map(({ word }) => word),
        kinds,
      )} -- "$word")) ;;`,
  )
  .join('\n')}
  esac
}
complete -o default -F _ats ats`,
  zsh: choices => `#compdef ats
_ats() {
  local commandPath='' each
  local -a candidates
  for each in "\${words[@]:1:CURRENT-2}"; do
    case "\${commandPath:+$commandPath }$each" in
${pathsPattern(choices, 6)}) commandPath="\${commandPath:+$commandPath }$each" ;;
    esac
  done
  case "$commandPath \${words[CURRENT-1]}" in
${valuesOf(choices)
  .map(({ pattern, list }) => `    ${pattern}) candidates=(\${=:-${list}}); _describe 'ats' candidates; return ;;`)
  .join('\n')}
  esac
  case "$commandPath" in
${choices.map(({ path, words, kinds }) => `    ${quoted(path)}) candidates=(${words.map(({ word, description }) => quoted(`${word.replaceAll(':', '\\:')}:${description}`)).join(' ')}${kinds.map(kind => ` \${(f)"$(ats complete ${kind} 2>/dev/null)"}`).join('')}) ;;`).join('\n')}
  esac
  _describe 'ats' candidates
}
compdef _ats ats`,
  fish: choices => `function __ats_path
  set -l path ''
  for each in (commandline -opc)[2..-1]
    switch (string trim -- "$path $each")
      case ${choices
        .filter(({ path }) => path !== '')
        .map(({ path }) => quoted(path))
        .join(' ')}
        set path (string trim -- "$path $each")
    end
  end
  echo $path
end
complete -c ats -f
${choices.flatMap(fishLines).join('\n')}`,
}

/** Returns the words of a list as the shell expands them. */
const listOf = (words: readonly string[], kinds: readonly WordKind[]) =>
  `"${[...words, ...kinds.map(kind => `$(ats complete ${kind} 2>/dev/null)`)].join(' ')}"`

/** Returns for each option with known values what stands before the cursor, and the values. */
const valuesOf = (choices: Choices[]) =>
  choices.flatMap(({ path, values }) =>
    values.map(({ option, words, kind }) => ({
      pattern: quoted(`${path} ${option}`),
      list: listOf(words, kind ? [kind] : []),
    })),
  )

function fishLines({ path, words, kinds, values }: Choices): string[] {
  const at = `complete -c ats -n 'test "$(__ats_path)" = "${path}"'`
  return [
    ...words.map(({ word, description }) => fishLine(path, word, description)),
    ...kinds.map(kind => `${at} -a '(ats complete ${kind} 2>/dev/null)'`),
    ...values.map(({ option, words, kind }) => {
      const list = kind ? `(ats complete ${kind} 2>/dev/null)` : words.join(' ')
      return `${at} -l ${option.slice(2)} -x -a '${list}'`
    }),
  ]
}

function pathsPattern(choices: Choices[], indent: number): string {
  const paths = choices.map(({ path }) => path).filter(path => path !== '')
  return `${' '.repeat(indent)}${paths.map(quoted).join('|')}`
}

function fishLine(path: string, word: string, description: string): string {
  const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`
  return `complete -c ats -n 'test "$(__ats_path)" = "${path}"' ${what} -d ${quoted(description)}`
}
