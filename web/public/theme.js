// Sets a chosen theme before the first paint. Without one, the system's preference holds.
try {
  const theme = localStorage.getItem('theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // storage is blocked
}

// Says that the script of the pages did not load: without it, nothing else can.
addEventListener(
  'error',
  ({ target }) => {
    const app = document.getElementById('app')
    if (!(target instanceof HTMLScriptElement) || !app) return
    app.textContent = 'The script of these pages could not be loaded. Reload the page to try again.'
    app.setAttribute('role', 'alert')
  },
  true,
)
