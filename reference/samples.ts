import { sampleWithClient } from './client-samples.ts'
import { pythonLiteral, sampleWithPython } from './python-samples.ts'
import type { RequestValues, SampleOperation } from './sample-types.ts'

export const languages = { curl: 'curl', typescript: 'TypeScript', python: 'Python', mcp: 'MCP' } as const
export type Language = keyof typeof languages

/** Returns the path and query of a request. */
export function targetOf(path: string, { path: params, query }: Pick<RequestValues, 'path' | 'query'>): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] || `{${name}}`))
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '')).toString()
  return search === '' ? filled : `${filled}?${search}`
}

/**
 * Returns a program that sends the request to the service at `base`; undefined for an operation that is no MCP tool.
 */
export function sampleOf(
  language: Language,
  base: string,
  operation: SampleOperation,
  values: RequestValues,
): string | undefined {
  if (language === 'mcp') return toolCall(base, operation, values)
  const clientSamples = { curl: () => undefined, typescript: sampleWithClient, python: sampleWithPython }
  const clientSample = clientSamples[language](base, operation, values)
  if (clientSample !== undefined) return clientSample
  const url = `${base}${targetOf(operation.path, values)}`
  if (operation.quote) {
    const { path, parameters } = operation.quote
    const query = { ...parameters, ...pickQuoted(parameters, values.body) }
    const quoteUrl = `${base}${targetOf(path, { path: values.path, query })}`
    return (language === 'python' ? signedInPython : signedWithCurl)(quoteUrl, url, operation)
  }
  return (operation.isStream ? streamSamples : plainSamples)[language](url, operation, values)
}

/** Returns how a model calls the tool, once its client knows the server. */
function toolCall(base: string, { tool, numbers }: SampleOperation, values: RequestValues): string | undefined {
  if (tool === undefined) return undefined
  const given = Object.entries({ ...values.path, ...values.query }).filter(([, value]) => value !== '')
  const parameters = given.map(([name, value]) => [name, numbers.includes(name) ? Number(value) : value])
  const call = {
    name: tool,
    arguments: { ...Object.fromEntries(parameters), ...(values.body as object | undefined) },
  }
  return `# Once: claude mcp add --transport http trading ${base}/mcp
# Then the model calls the tool:
${json(call)}`
}

/** Returns the fields of a body that its quote takes too, so that the sample quotes what the form says. */
function pickQuoted(parameters: Record<string, string>, body: unknown): Record<string, string> {
  const fields = Object.entries((body ?? {}) as Record<string, unknown>)
  return Object.fromEntries(
    fields.flatMap(([name, value]) =>
      name in parameters && name !== 'exits' && ['string', 'number', 'boolean'].includes(typeof value)
        ? [[name, `${value}`]]
        : [],
    ),
  )
}

type Sample = (url: string, operation: SampleOperation, values: RequestValues) => string

const shellQuoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
const json = (value: unknown, indent = 2) => JSON.stringify(value, null, indent)
const indented = (text: string, by: string) => text.replaceAll('\n', `\n${by}`)
const scriptQuoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

const plainSamples: Record<Exclude<Language, 'mcp'>, Sample> = {
  curl(url, { method }, { headers, body }) {
    const verb = method === 'get' ? '' : ` -X ${method.toUpperCase()}`
    const lines = [`curl -s${verb} ${shellQuoted(url)}`]
    for (const [name, value] of Object.entries(headers)) lines.push(`-H ${shellQuoted(`${name}: ${value}`)}`)
    if (body !== undefined) lines.push("-H 'Content-Type: application/json'", `-d ${shellQuoted(json(body))}`)
    return lines.join(' \\\n  ')
  },
  typescript(url, { method }, { headers, body }) {
    const sent = { ...headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) }
    const options = [
      ...(method === 'get' ? [] : [`method: '${method.toUpperCase()}'`]),
      ...(Object.keys(sent).length > 0 ? [`headers: ${json(sent, 0)}`] : []),
      ...(body === undefined ? [] : [`body: JSON.stringify(${indented(json(body), '  ')})`]),
    ]
    const init = options.length === 0 ? '' : `, {\n  ${options.join(',\n  ')},\n}`
    return `const response = await fetch(${scriptQuoted(url)}${init})
const result = await response.json()
if (!response.ok) throw new Error(\`\${result.code}: \${result.error} \${result.remedy ?? ''}\`)
console.log(result)`
  },
  python(url, { method, isText }, { headers, body }) {
    const sent = { ...headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) }
    const options = [
      ...(method === 'get' ? [] : [`method="${method.toUpperCase()}"`]),
      ...(Object.keys(sent).length > 0 ? [`headers=${pythonLiteral(sent)}`] : []),
      ...(body === undefined ? [] : [`data=json.dumps(${pythonLiteral(body, 4)}).encode()`]),
    ]
    const call = options.length === 0 ? json(url) : `\n    ${[json(url), ...options].join(',\n    ')},\n`
    return `import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

try:
    with urlopen(Request(${indented(call, '    ')})) as response:
        print(${isText ? 'response.read().decode()' : 'json.load(response)'})
except HTTPError as error:
    print(json.load(error))  # code, error and remedy`
  },
}

const streamSamples: Record<Exclude<Language, 'mcp'>, Sample> = {
  curl: url => `curl -sN ${shellQuoted(url)}`,
  typescript: url => `const response = await fetch(${scriptQuoted(url)})
if (!response.ok || !response.body) throw new Error(await response.text())
const decoder = new TextDecoder()
for await (const chunk of response.body) process.stdout.write(decoder.decode(chunk, { stream: true }))`,
  python: url => `from urllib.request import urlopen

with urlopen(${json(url)}) as stream:
    for line in stream:
        print(line.decode().rstrip(), flush=True)`,
}

type SignedSample = (quoteUrl: string, url: string, operation: SampleOperation) => string

const feeNote = ({ isPaid }: SampleOperation, mark: string) =>
  isPaid ? `${mark} A 402 response asks for the registration fee: see the guide on payment.\n` : ''

const signedWithCurl: SignedSample = (
  quoteUrl,
  url,
  operation,
) => `# The quote has the typed data to sign and the body to post.
curl -s ${shellQuoted(quoteUrl)} > quote.json
jq .typedData quote.json > typed-data.json
# Any EIP-712 signer will do; this one is Foundry's, with a key from its keystore.
SIGNATURE=$(cast wallet sign --account agent --data --from-file typed-data.json)
${feeNote(operation, '#')}jq --arg signature "$SIGNATURE" '.body + {$signature}' quote.json \\
  | curl -s -X ${operation.method.toUpperCase()} ${shellQuoted(url)} -H 'Content-Type: application/json' -d @-`

const signedInPython: SignedSample = (quoteUrl, url, operation) => `import json, os
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from eth_account import Account  # pip install eth-account

quote = json.load(urlopen(${json(quoteUrl)}))
signed = Account.sign_typed_data(os.environ["KEY"], full_message=quote["typedData"])
body = {**quote["body"], "signature": "0x" + signed.signature.hex().removeprefix("0x")}
${feeNote(operation, '#')}request = Request(
    ${json(url)},
    method="${operation.method.toUpperCase()}",
    headers={"Content-Type": "application/json"},
    data=json.dumps(body).encode(),
)
try:
    with urlopen(request) as response:
        print(json.load(response))
except HTTPError as error:
    print(json.load(error))  # code, error and remedy`
