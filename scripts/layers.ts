/**
 * The layers of src/, highest first: folders and top-level files. A layer imports only from the rows below its own;
 * layers that share a row do not import each other. Type imports count.
 * biome.layers.json is generated from this table: run `npm run layers` after a change.
 */
export const layers = [
  ['index'],
  ['http', 'mcp'],
  ['operations'],
  ['context'],
  ['resources'],
  ['webhooks'],
  ['live'],
  ['keeper', 'payments', 'intake-switches'],
  ['executor'],
  ['history'],
  ['price-providers'],
  ['chain'],
  ['rpc', 'protocol'],
  ['catalog', 'read-cache', 'combine-concurrent-reads'],
  ['rate-limits'],
  ['log', 'client-address', 'parallel-gate', 'request-body'],
  ['metrics'],
  ['timeout'],
  ['config'],
  ['variable-schemas'],
  ['secp256k1'],
  ['keccak256'],
  ['webassembly-or-javascript'],
  ['errors'],
] as const satisfies string[][]

export type Layer = (typeof layers)[number][number]

/** Packages that only some layers may import, as gitignore-style patterns; any layer may import the others. */
export const restrictedPackages: { packages: string[]; layers: Layer[] }[] = [
  { packages: ['hono', 'hono/**', '@hono/**'], layers: ['http'] },
  { packages: ['@modelcontextprotocol/**'], layers: ['mcp'] },
  { packages: ['@x402/**'], layers: ['payments'] },
  {
    packages: ['cloudflare:workers'],
    layers: [
      'index',
      'mcp',
      'webhooks',
      'live',
      'keeper',
      'payments',
      'intake-switches',
      'executor',
      'history',
      'read-cache',
      'combine-concurrent-reads',
      'metrics',
    ],
  },
  {
    packages: ['zod', 'zod/**'],
    layers: ['http', 'mcp', 'operations', 'resources', 'payments', 'config', 'variable-schemas'],
  },
]

/** Names of packages that only some layers may import. */
export const restrictedNames: { name: string; imports: string[]; layers: Layer[] }[] = [
  {
    name: 'viem',
    imports: [
      'createClient',
      'createPublicClient',
      'createWalletClient',
      'createTransport',
      'custom',
      'fallback',
      'http',
      'webSocket',
    ],
    layers: ['rpc'],
  },
]
