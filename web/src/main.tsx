import { render } from 'preact'
import { App } from './app.tsx'
import { startRouter } from './router.tsx'

const root = document.getElementById('app')
if (root === null) throw new Error('The page has no element #app.')
startRouter()
root.replaceChildren()
render(<App />, root)
