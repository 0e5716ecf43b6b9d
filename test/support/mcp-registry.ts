import { z } from 'zod'

/** The schema of the MCP registry whose rules for a server on npm over stdio are below. */
export const MCP_REGISTRY_SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'

const exactVersion = z
  .string()
  .max(255)
  .regex(/^\d+\.\d+\.\d+(-[\w.]+)?$/)

const input = z.strictObject({
  description: z.string().optional(),
  isRequired: z.boolean().optional(),
  format: z.enum(['string', 'number', 'boolean', 'filepath']).optional(),
  value: z.string().optional(),
  isSecret: z.boolean().optional(),
  default: z.string().optional(),
  placeholder: z.string().optional(),
  choices: z.array(z.string()).optional(),
})
const withVariables = input.extend({ variables: z.record(z.string(), input).optional() })
const positional = withVariables
  .extend({ type: z.literal('positional'), valueHint: z.string().optional(), isRepeated: z.boolean().optional() })
  .refine(({ value, valueHint }) => value !== undefined || valueHint !== undefined, 'needs a value or a valueHint')
const named = withVariables.extend({ type: z.literal('named'), name: z.string(), isRepeated: z.boolean().optional() })
const argument = z.union([positional, named])

/**
 * What the registry accepts in `server.json` for an npm package that speaks over stdio. Unknown fields are errors here.
 */
export const registeredServer = z.strictObject({
  $schema: z.literal(MCP_REGISTRY_SCHEMA),
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  title: z.string().min(1).max(100).optional(),
  description: z.string().min(1).max(100),
  version: exactVersion,
  websiteUrl: z.url().optional(),
  repository: z
    .strictObject({ url: z.url(), source: z.string(), id: z.string().optional(), subfolder: z.string().optional() })
    .optional(),
  packages: z
    .array(
      z.strictObject({
        registryType: z.literal('npm'),
        registryBaseUrl: z.literal('https://registry.npmjs.org').optional(),
        identifier: z.string().min(1),
        version: exactVersion,
        runtimeHint: z.literal('npx').optional(),
        transport: z.strictObject({ type: z.literal('stdio') }),
        runtimeArguments: z.array(argument).optional(),
        packageArguments: z.array(argument).optional(),
        environmentVariables: z.array(withVariables.extend({ name: z.string() })).optional(),
      }),
    )
    .min(1),
})
