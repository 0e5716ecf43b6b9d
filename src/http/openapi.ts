import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Config } from '../config.ts'
import type { AppEnv } from './app.ts'

/** The OpenAPI 3.1 description of the HTTP surface, made from the operations. */
export const openApiDocument = (app: OpenAPIHono<AppEnv>, { service, version, baseUrl }: Config) =>
  app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: service,
      version,
      description: 'Registry and trading interface for autonomous agents that trade inside thematic vaults.',
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    ...(baseUrl !== undefined && { servers: [{ url: baseUrl }] }),
  })
