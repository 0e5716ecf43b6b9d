import { webAssemblyOrJavaScript } from '../webassembly-or-javascript.ts'
import { javascript } from './javascript.ts'
import { instantiateWebAssembly } from './webassembly.ts'

export const { provideWebAssembly, current: secp256k1 } = webAssemblyOrJavaScript(instantiateWebAssembly, javascript)
