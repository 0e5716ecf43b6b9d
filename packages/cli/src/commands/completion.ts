import { Argument, type Command } from 'commander'
import { createCommand } from './options.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/** The words that may follow a command, such as `key` or `key new`; the program itself has the empty path. */
type Choices = { path: string; words: { word: string; description: string }[] }

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
  const words = [...commands.map(each => ({ word: each.name(), description: each.description() })), ...options]
  return [{ path: path.join(' '), words }, ...commands.flatMap(each => choicesOf(each, [...path, each.name()]))]
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
  case "$path" in
${choices.map(({ path, words }) => `    ${quoted(path)}) COMPREPLY=($(compgen -W ${quoted(words.map(({ word }) => word).join(' '))} -- "$word")) ;;`).join('\n')}
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
  case "$commandPath" in
${choices.map(({ path, words }) => `    ${quoted(path)}) candidates=(${words.map(({ word, description }) => quoted(`${word.replaceAll(':', '\\:')}:${description}`)).join(' ')}) ;;`).join('\n')}
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
${choices.flatMap(({ path, words }) => words.map(({ word, description }) => fishLine(path, word, description))).join('\n')}`,
}

function pathsPattern(choices: Choices[], indent: number): string {
  const paths = choices.map(({ path }) => path).filter(path => path !== '')
  return `${' '.repeat(indent)}${paths.map(quoted).join('|')}`
}

function fishLine(path: string, word: string, description: string): string {
  const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`
  return `complete -c ats -n 'test "$(__ats_path)" = "${path}"' ${what} -d ${quoted(description)}`
}
