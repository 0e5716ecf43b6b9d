import type { Finding, Verdict } from '@agent-trading-service/protocol/finding'
import { type Command, Option } from 'commander'
import { Failure } from '../failure.ts'
import { cleanLines } from '../output/clean.ts'
import { createPrinter, type OutputFormat } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { createCommand, rpcOption } from './options.ts'

type DoctorCommandOptions = {
  vars?: string
  env?: string
  wrangler: string
  deployment?: string
  rpc?: string
  url?: string
  service: boolean
  all?: boolean
  output: OutputFormat
}

/** `ats doctor`: checks a deployment and names what fixes it. */
export function doctorCommand(): Command {
  return withDeploymentOptions(
    createCommand(
      'doctor',
      'check the configuration, the contracts and the service of a deployment; sends nothing',
      'ats doctor --vars .dev.vars',
      'ats doctor --env arbitrum-sepolia --rpc https://… --all',
    ),
  )
    .addOption(new Option('--url <url>', 'base URL of the service; BASE_URL by default').env('ATS_URL'))
    .option('--no-service', 'do not query the service')
    .option('--all', 'also list what is in order')
    .action(doctor)
}

/** Adds the options that name a deployment. */
export const withDeploymentOptions = (command: Command): Command =>
  command
    .addOption(new Option('--vars <file>', "variables as NAME='value' lines, such as .dev.vars").env('ATS_VARS'))
    .addOption(new Option('--env <name>', 'environment of wrangler.toml').env('ATS_ENV'))
    .addOption(new Option('--wrangler <file>', 'the wrangler.toml of --env').default('wrangler.toml'))
    .addOption(
      new Option('--deployment <file>', 'file that npm run deploy:contracts has written').env('ATS_DEPLOYMENT'),
    )
    .addOption(rpcOption('node to use instead of RPC_URL'))

async function doctor({ service, output, all, url, ...source }: DoctorCommandOptions): Promise<void> {
  const { examine } = await import('../operator/doctor.ts')
  const { worstVerdict } = await import('@agent-trading-service/protocol/finding')
  const findings = await withProgress('Checking the deployment', examine({ ...source, url: service ? url : null }))
  const verdict = worstVerdict(findings)
  const counts = countsOf(findings)
  const printer = createPrinter(output)
  if (output === 'json') printer.result({ verdict, counts, findings })
  else process.stdout.write(`${cleanLines(describe(findings, counts, all === true))}\n`)
  if (verdict === 'wrong' || verdict === 'warning')
    throw new Failure(verdict === 'wrong' ? 'wrong' : 'warning', sentenceOf(counts), {
      code: verdict === 'wrong' ? 'DEPLOYMENT_WRONG' : 'DEPLOYMENT_WARNING',
      remedy: 'Each finding above names what fixes it.',
    })
}

type Counts = Record<Verdict, number>

function countsOf(findings: readonly Finding[]): Counts {
  const count = (verdict: Verdict) => findings.filter(finding => finding.verdict === verdict).length
  return { ok: count('ok'), unchecked: count('unchecked'), warning: count('warning'), wrong: count('wrong') }
}

const sentenceOf = ({ wrong, warning, unchecked, ok }: Counts) =>
  `${wrong} wrong, ${warning} ${warning === 1 ? 'warning' : 'warnings'}, ${unchecked} not checked, ${ok} in order.`

const ORDER: Verdict[] = ['wrong', 'warning', 'unchecked', 'ok']

function describe(findings: readonly Finding[], counts: Counts, all: boolean): string {
  const shown = ORDER.flatMap(verdict =>
    verdict === 'ok' && !all ? [] : findings.filter(each => each.verdict === verdict),
  )
  const blocks = shown.map(({ verdict, check, sentence, fix }) =>
    [`${verdict.toUpperCase().padEnd(9)}  ${check}: ${sentence}`, ...(fix ? [`           fix: ${fix}`] : [])].join(
      '\n',
    ),
  )
  return [...blocks, sentenceOf(counts)].join('\n').replace(/[^\P{Cc}\n]/gu, ' ')
}
