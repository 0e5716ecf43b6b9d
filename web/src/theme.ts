import { writeText } from './data/storage.ts'
import { createStore } from './data/store.ts'

/** A theme that the reader chose; `system` follows the system's preference. */
export type Theme = 'system' | 'light' | 'dark'

const isChosen = (value: string | undefined): value is 'light' | 'dark' => value === 'light' || value === 'dark'
const initial = document.documentElement.dataset.theme

export const theme = createStore<Theme>(isChosen(initial) ? initial : 'system')

/** Applies a theme and remembers it. public/theme.js applies it before the next page's first paint. */
export function chooseTheme(next: Theme): void {
  if (next === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = next
  writeText('localStorage', 'theme', next === 'system' ? undefined : next)
  theme.set(next)
}
