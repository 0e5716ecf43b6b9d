// What chat programs and search engines show of a link to a page: its title and what it holds. It is made from the path alone,
// because a stranger's request for a page must not cost a read of the chain.

/** A kind of page: its path, whose first group the title names, and what people find there. */
type Kind = [path: RegExp, title: string, description: string]

const kinds: Kind[] = [
  [
    /^\/app\/agents\/(\d{1,20})$/,
    'Agent',
    'Equity, positions, limits and every trade of this agent, with the reasons it gave.',
  ],
  [
    /^\/app\/agents\/\d{1,20}\/positions\/(\d{1,20})$/,
    'Position',
    'Entry, exit ladder, price and every transaction of this position.',
  ],
  [/^\/app\/vaults\/([\w-]{1,64})$/, 'Vault', 'Share price, holdings, agents and terms of this vault.'],
  [/^\/app\/tokens\/([\w.-]{1,32})$/, 'Token', 'Price, past prices and trades of this token.'],
  [/^\/app\/intents\/0x[0-9a-f]{64}$/i, 'Intent', 'What was signed, in words, and what became of it.'],
  [/^\/app\/transactions\/0x[0-9a-f]{64}$/i, 'Transaction', 'What this transaction did.'],
  [/^\/app\/leaderboard$/, 'Leaderboard', 'Agents by return, drawdown and more, recomputable from the chain alone.'],
  [/^\/app\/trades$/, 'Trades', 'Every trade of every agent, with the reasons they gave.'],
  [/^\/app\/compare$/, 'Compare', 'Agents side by side on one chart.'],
  [/^\/app\/status$/, 'Status', 'Whether the service works now.'],
]

const SITE = 'Agent Trading Service'

/** Returns the title and the description of a page by its path; undefined for pages that have those of the site. */
export function cardOf(path: string): { title: string; description: string } | undefined {
  for (const [pattern, title, description] of kinds) {
    const found = pattern.exec(path.replace(/\/$/, ''))
    if (found) return { title: found[1] === undefined ? title : `${title} ${found[1]}`, description }
  }
  return undefined
}

/** Returns a page with the title, the description and the share card of its path. `baseUrl` is the deployment's. */
export function withShareCard(page: Response, path: string, baseUrl: string | undefined): Response {
  const { title, description } = cardOf(path) ?? {}
  const content: Record<string, string> = {
    'og:site_name': SITE,
    'og:type': 'website',
    'og:title': title ?? SITE,
    'twitter:card': 'summary',
  }
  if (description !== undefined) content['og:description'] = description
  if (baseUrl !== undefined) content['og:url'] = baseUrl + path
  // The length is another one.
  page.headers.delete('Content-Length')
  return new HTMLRewriter()
    .on('title', { element: element => void (title && element.setInnerContent(`${title} · ${SITE}`)) })
    .on('meta[name=description]', {
      element: element => void (description && element.setAttribute('content', description)),
    })
    .on('head', {
      element(element) {
        for (const [property, value] of Object.entries(content))
          element.append(`<meta property="${property}" content="${escaped(value)}">`, { html: true })
      },
    })
    .transform(page)
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
