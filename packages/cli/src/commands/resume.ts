import { createClient } from '@agent-trading-service/client'
import type { Command } from 'commander'
import { homeFolder } from '../keys/key-folder.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { addressOf } from '../trading/create-reader.ts'
import { createNonceFiles } from '../trading/nonce-files.ts'
import { isFinal, listPending, removePending } from '../trading/pending.ts'
import { createServiceCommand, type ServiceOptions } from './options.ts'

/** `ats resume`: finds out what became of messages that were signed and posted without a known outcome. */
export function resumeCommand(): Command {
  return createServiceCommand(
    'resume',
    'find out what became of signed messages whose outcome is unknown; never trades twice',
    'ats resume',
  )
    .argument('[digest]', 'digest of one message')
    .action(resume)
}

async function resume(digest: string | undefined, { output, ...service }: ServiceOptions): Promise<void> {
  const home = homeFolder()
  const client = createClient({ ...addressOf(service), nonceStore: createNonceFiles(home) })
  const outcomes: Record<string, unknown>[] = []
  for (const submission of listPending(home, digest)) {
    try {
      const receipt = await withProgress(`Resuming ${submission.digest}`, client.resume(submission))
      outcomes.push({ digest: submission.digest, outcome: 'executed', ...receipt })
    } catch (error) {
      if (!isFinal(error)) throw error
      outcomes.push({ digest: submission.digest, outcome: 'refused', code: error.code, error: error.message })
    }
    removePending(home, submission.digest)
  }
  createPrinter(output).result({ messages: outcomes })
}
