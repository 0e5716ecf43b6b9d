import { enableCopying, enableFilter, enableMenu, enableThemes } from './page.ts'
import { enableSearch } from './search.ts'
import { enableTabs } from './tabs.ts'
import { enableTrying } from './try-it.ts'

enableThemes()
enableMenu()
enableSearch()
enableTabs()
enableCopying()
enableFilter()
enableTrying()
for (const code of document.querySelectorAll('[data-base]'))
  code.textContent = (code.textContent ?? '').replaceAll('https://api.example', location.origin)
