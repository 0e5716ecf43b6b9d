import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const workspace = join(import.meta.dirname, 'node-20/package.json')

/** The path of Node 20, the oldest version that the packages support. `npm ci` installs it. */
export const node20 = join(dirname(createRequire(workspace).resolve('node/package.json')), 'bin/node')
