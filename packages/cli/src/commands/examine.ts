import { availableParallelism } from 'node:os'
import { Command, Option } from 'commander'
import type { Address } from 'viem'
import { accountAddress, integer, keyOption, passwordFileOption } from './options.ts'
import {
  chainIdOption,
  hoursOption,
  MARKET_KINDS,
  type MarketKind,
  pathOption,
  runInClone,
  type TapeFile,
  tapeOption,
  zoneOption,
} from './rehearse.ts'

/** The options of an examination. */
export type ExamineOptions = {
  seeds: number
  days: number
  market: MarketKind[]
  tape: TapeFile[]
  tz?: string
  path: 'natural' | 'pessimistic'
  windows: number
  disguises: number
  hours: 'market' | 'all'
  jobs: number
  out: string
  report?: string
  json?: string
  certificate?: string
  owner?: Address
  recompute?: string
  key?: string
  passwordFile?: string
  chainId: number
}

/** Returns the command `examine` with its options; `run` gets them and the program after `--`. */
export function createExamineCommand(run: (program: string[], options: ExamineOptions) => Promise<void>): Command {
  return new Command('examine')
    .description('play many markets to an agent, and report whether it has an edge or had luck')
    .argument('[program...]', 'the agent under test and its arguments, after --')
    .addOption(new Option('--seeds <n>', 'markets to generate').default(100).argParser(integer(0, 100_000)))
    .addOption(new Option('--days <n>', 'length of each generated market').default(30).argParser(integer(1, 366)))
    .addOption(
      new Option('--market <kind...>', 'how they are generated').choices(MARKET_KINDS).default([], 'all kinds in turn'),
    )
    .addOption(tapeOption())
    .addOption(zoneOption())
    .addOption(pathOption())
    .addOption(
      new Option('--windows <n>', 'also play the tape in this many parts').default(0).argParser(integer(0, 1_000)),
    )
    .addOption(
      new Option('--disguises <n>', 'also play the tape as it is, and so often with other symbols, dates and scales')
        .default(0)
        .argParser(integer(0, 1_000)),
    )
    .addOption(hoursOption())
    .addOption(
      new Option('--jobs <n>', 'runs at a time')
        .default(availableParallelism(), 'one for each core')
        .argParser(integer(1, 256)),
    )
    .option(
      '--out <folder>',
      'where runs are kept, so that an examination resumes and counts its variants',
      'examination',
    )
    .option('--report <file>', 'write the report as one HTML page')
    .option('--json <file>', 'write the statistics and runs as JSON')
    .option('--certificate <file>', 'write a signed certificate of the result')
    .option('--owner <address>', 'the owner whose agents the certificate is for; the key by default', accountAddress)
    .addOption(
      new Option('--recompute <file>', 'examine the agent as a certificate says, and compare the results').conflicts([
        'certificate',
      ]),
    )
    .addOption(keyOption())
    .addOption(passwordFileOption())
    .addOption(chainIdOption())
    .addHelpText(
      'after',
      `
Example:
  $ ats examine --seeds 100 --days 30 -- node agent.mjs
  $ ats examine --tape day.csv --windows 4 --disguises 8 --report examination.html -- node agent.mjs
  $ ats examine --certificate mine.json --key trader -- node agent.mjs
  $ ats examine --recompute mine.json -- node agent.mjs

Each run has an agent process of its own with BASE, RPC_URL, AGENT_KEY, ATS_AGENT and a seed in ATS_SEED.`,
    )
    .action(run)
}

/** `ats examine`: runs in a clone of the repository, which has the embedded chain. */
export const examineCommand = (): Command => createExamineCommand(() => runInClone('examine'))
