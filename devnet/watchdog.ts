import { rmSync } from 'node:fs'

// Runs beside a process group: when the parent is gone, even by SIGKILL, it ends the group and removes its folder, if it has one.
const [groupLeader = '', folder] = process.argv.slice(2)

process.on('disconnect', () => {
  try {
    process.kill(-Number(groupLeader), 'SIGKILL')
  } catch {
    // it was stopped before its parent ended
  }
  if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})
