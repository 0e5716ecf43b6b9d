// @cloudflare/vitest-plugin imports the Worker's main module for each request and each call of a Durable Object, and
// each time vitest's runner asks the host where the module is. Here it asks once.

type Runner = { vitestOptions: { transport: { resolveId(id: string, importer?: string): Promise<unknown> } } }
const { moduleRunner } = (globalThis as never as { __vitest_mocker__: { moduleRunner: Runner } }).__vitest_mocker__
const { transport } = moduleRunner.vitestOptions
const { resolveId } = transport
const resolved = new Map<string, unknown>()

/** Keeps the result and not its promise, because requests cannot wait for each other. */
transport.resolveId = async (id, importer) => {
  const key = `${importer} ${id}`
  const known = resolved.get(key) ?? (await resolveId(id, importer))
  resolved.set(key, known)
  return known
}
