/** A part of a host that is this long is more likely a key than a name. */
const KEY = /[a-z0-9_-]{24,}/gi

/**
 * Returns the names of nodes in metrics: the host and port of each URL, without credentials, path and query. A further
 * node on the same host gets its position appended.
 */
export function nodeNames(urls: readonly string[]): string[] {
  const hosts = urls.map(url => (URL.parse(url)?.host ?? 'invalid').replaceAll(KEY, '*'))
  return hosts.map((host, index) => (hosts.indexOf(host) === index ? host : `${host} ${index + 1}`))
}
