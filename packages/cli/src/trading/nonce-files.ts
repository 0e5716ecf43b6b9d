import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NonceRecord, NonceStore } from '@agent-trading-service/client'
import { makePrivateFolder } from '../keys/private-mode.ts'

/** Keeps which nonces were used in `nonces/` of the home folder, because each command is a process of its own. */
export function createNonceFiles(home: string): NonceStore {
  const folder = join(home, 'nonces')
  const pathOf = (holder: string) => join(folder, `${holder}.json`)
  return {
    read: holder =>
      existsSync(pathOf(holder)) ? (JSON.parse(readFileSync(pathOf(holder), 'utf8')) as NonceRecord) : undefined,
    write(holder, record) {
      makePrivateFolder(home)
      makePrivateFolder(folder)
      const temporary = `${pathOf(holder)}.${process.pid}`
      writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600 })
      renameSync(temporary, pathOf(holder))
    },
  }
}
