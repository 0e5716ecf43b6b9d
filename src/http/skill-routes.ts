import type { OpenAPIHono } from '@hono/zod-openapi'
import { skills } from '../generated/skills.ts'
import type { AppEnv } from './app-env.ts'

const FOLDER = '/.well-known/agent-skills'

/** The index of the skills, as the discovery format for agent skills defines it. */
const index = {
  $schema: 'https://schemas.agentskills.io/discovery/0.2.0/schema.json',
  skills: skills.map(({ frontmatter: { name, description }, resources: [file] }) => ({
    name,
    type: 'skill-md',
    description,
    url: `${FOLDER}/${name}/SKILL.md`,
    digest: file?.digest,
  })),
}

const headers = { 'Cache-Control': 'public, max-age=3600' }

/** Adds the skills for agents: their index, and one file each. */
export function addSkillRoutes(app: OpenAPIHono<AppEnv>): void {
  app.get(`${FOLDER}/index.json`, c => c.json(index, 200, headers))
  for (const { text, frontmatter } of skills)
    app.get(`${FOLDER}/${frontmatter.name}/SKILL.md`, c =>
      c.body(text, 200, { ...headers, 'Content-Type': 'text/markdown; charset=utf-8' }),
    )
}
