import { Html, html } from './html.ts'

export type NavigationEntry = { title: string; url: string; method?: string }
export type NavigationGroup = { title: string; entries: NavigationEntry[] }

type Page = { title: string; url: string; description: string; main: Html; aside?: Html }

/** Renders a whole page around its main content. */
export const layout =
  (service: string, version: string, navigation: readonly NavigationGroup[]) =>
  ({ title, url, description, main, aside }: Page): string =>
    html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${description}">
<title>${title === service ? `${service}: API reference` : `${title} · ${service} API`}</title>
<link rel="icon" href="/docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/reference.css">
<script src="/docs/theme.js"></script>
<script src="/docs/reference.js" type="module"></script>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header class="top">
<a class="brand" href="/docs"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M3 17l5-6 4 3 8-10"/><circle cx="20" cy="4" r="2"/></svg><span>API reference</span></a>
<button type="button" class="search-button" data-search><span>Search</span><kbd>/</kbd></button>
<button type="button" class="icon-button" data-theme-toggle aria-label="Switch between light and dark"><svg viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="8"/><path d="M12 4a8 8 0 0 1 0 16z"/></svg></button>
<button type="button" class="icon-button menu-button" data-menu aria-expanded="false" aria-controls="navigation" aria-label="Menu"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 7h16M4 12h16M4 17h16"/></svg></button>
</header>
<div class="columns${aside ? ' with-aside' : ''}">
<nav id="navigation" aria-label="Reference">${navigation.map(group => navigationGroup(group, url))}<p class="version">${service} ${version}<br><a href="/openapi.json">OpenAPI 3.1</a> · <a href="/llms.txt">llms.txt</a><br><a href="/app">Vaults, agents and desks</a></p></nav>
<main id="main" tabindex="-1">${main}</main>
${aside && html`<aside aria-label="Samples and examples">${aside}</aside>`}
</div>
<dialog class="search" aria-label="Search the reference">
<input type="search" role="combobox" aria-expanded="false" aria-controls="search-results" aria-autocomplete="list" aria-label="Search operations, errors, guides and fields" placeholder="Operation, error, guide or field" autocomplete="off" spellcheck="false">
<ul id="search-results" role="listbox" aria-label="Results"></ul>
<p class="search-status" role="status"></p>
</dialog>
</body>
</html>
`.text

function navigationGroup({ title, entries }: NavigationGroup, current: string): Html {
  return html`<h2>${title}</h2><ul>${entries.map(
    ({ title: name, url, method }) =>
      html`<li><a href="${url}"${new Html(url === current ? ' aria-current="page"' : '')}><span>${name}</span>${
        method && html`<span class="method ${method}">${shortMethod(method)}</span>`
      }</a></li>`,
  )}</ul>`
}

const shortMethod = (method: string) => method.toUpperCase()
