// Sets a chosen theme before the first paint. Without one, the system's preference holds.
try {
  const theme = localStorage.getItem('theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // storage is blocked
}
