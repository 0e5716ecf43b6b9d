import { rmSync } from 'node:fs'

// Kills a process group and removes its folder, if one is given, once the parent process has exited, even by SIGKILL.
const [groupLeader = '', folder] = process.argv.slice(2)

process.on('disconnect', () => {
  try {
    process.kill(-Number(groupLeader), 'SIGKILL')
  } catch {
    // the group was stopped before the parent exited
  }
  if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})
