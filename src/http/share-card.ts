import { percentText } from '@agent-trading-service/protocol/percent'
import { showUnseen } from '@agent-trading-service/protocol/unseen-text'
import type { ShareFigure } from '../operations/share-figures.ts'

// What chat programs and search engines show of a link to a page: its title and what it holds. It is made from the path
// and from figures that all requests of a minute share: a stranger's request for a page must not cost a read.

/** Titles and descriptions by the last name in a path. What follows the name is in the title too, unless it is long. */
const cards: Record<string, [title: string, description: string]> = {
  agents: ['Agent', 'Equity, positions, limits and every trade of this agent, with the reasons it gave.'],
  positions: ['Position', 'Entry, exit ladder, price and every transaction of this position.'],
  vaults: ['Vault', 'Share price, holdings, agents and terms of this vault.'],
  tokens: ['Token', 'Price, past prices and trades of this token.'],
  intents: ['Intent', 'What was signed, in words, and what became of it.'],
  transactions: ['Transaction', 'What this transaction did.'],
  leaderboard: ['Leaderboard', 'Agents by return, drawdown and more, recomputable from the chain alone.'],
  trades: ['Trades', 'Every trade of every agent, with the reasons they gave.'],
  compare: ['Compare', 'Agents side by side on one chart.'],
  status: ['Status', 'Whether the service works now.'],
  owner: ["Owner's desk", 'Stop agents, set their mandates and hand them over, with a wallet.'],
  depositor: ["Depositor's desk", 'Deposit USDC for shares of a vault, and redeem them, with a wallet.'],
}
/** The page that lists all vaults, whose path ends with the same name as that of one. */
const VAULTS: (typeof cards)[string] = ['Vaults', 'Share price, assets and terms of each vault.']
const MAX_SUBJECT_LENGTH = 32

const SITE = 'Agent Trading Service'

/** Returns the title and the description of a page by its path; undefined for pages that have those of the site. */
function cardOf(path: string): { title: string; description: string } | undefined {
  const [, , ...parts] = path.replace(/\/$/, '').split('/')
  const [name = '', subject = ''] = parts.slice(parts.length % 2 === 0 ? -2 : -1)
  const known = Object.hasOwn(cards, name) ? cards[name] : undefined
  const [title, description] = (name === 'vaults' && subject === '' ? VAULTS : known) ?? []
  if (title === undefined || description === undefined || !/^[\w.-]*$/.test(subject)) return undefined
  const isShown = subject !== '' && subject.length <= MAX_SUBJECT_LENGTH
  return { title: isShown ? `${title} ${subject}` : title, description }
}

/** Names are text of strangers: this many code points of them are shown, and unseen ones by their names. */
const MAX_NAME_LENGTH = 40

/** Returns the title of a page whose subject has a name and a return, such as `Momentum: +4.2 % · Agent 5`. */
function titleWith({ name, returnPpm }: ShareFigure, title: string): string {
  const points = [...showUnseen(name)]
  const shown = points.length > MAX_NAME_LENGTH ? `${points.slice(0, MAX_NAME_LENGTH - 1).join('')}…` : points.join('')
  const bps = Math.trunc((returnPpm ?? 0) / 100)
  const change = returnPpm === null ? '' : `: ${bps > 0 ? '+' : ''}${percentText(bps)}`
  return `${shown}${change} · ${title}`
}

type ShareFacts = { path: string; baseUrl: string | undefined; figure?: ShareFigure | undefined }

/** Returns a page with the title, the description and the share card of its path. `baseUrl` is the deployment's. */
export function withShareCard(page: Response, { path, baseUrl, figure }: ShareFacts): Response {
  const { title: plain, description } = cardOf(path) ?? {}
  const title = plain !== undefined && figure ? titleWith(figure, plain) : plain
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
