import { ProtocolError, ProtocolErrorCode, type ReadResourceResult, type Server } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { skills } from '../generated/skills.ts'

// The MCP extension for skills (SEP-2640). The SDK attaches it to its high-level server only, and would parse and hash
// the files at every start; `npm run skills` does that once.

export const skillsCapability = { 'io.modelcontextprotocol/skills': {} }

const mimeType = 'text/markdown'

/** The files of all skills, for `resources/list`. */
export const listedSkillFiles = skills.map(({ uri, frontmatter: { name, description } }) => ({
  uri,
  name: `skill-${name}`,
  title: `Skill: ${name}`,
  description,
  mimeType,
}))

/** Returns the file of a skill; undefined for another URI. */
export function readSkillFile(uri: string): ReadResourceResult | undefined {
  const skill = skills.find(skill => skill.uri === uri)
  return skill && { contents: [{ uri, mimeType, text: skill.text }] }
}

const entries = skills.map(({ uri, frontmatter, resources }) => ({ uri, frontmatter, resources }))
const cacheFields = { ttlMs: 3_600_000, cacheScope: 'public' }

/** Adds the methods of the extension to a server. */
export function serveSkills(server: Server): void {
  server.setRequestHandler('skills/list', { params: z.object({ cursor: z.string().optional() }) }, () => ({
    skills: entries,
    ...cacheFields,
  }))
  server.setRequestHandler('skills/get', { params: z.object({ uri: z.string() }) }, ({ uri }) => {
    const skill = entries.find(entry => entry.uri === uri)
    if (skill === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no skill at ${uri}`)
    return { skill, ...cacheFields }
  })
}
