import { javascript } from './secp256k1-javascript.ts'
import { instantiateWebAssembly } from './secp256k1-webassembly.ts'
import { webAssemblyOrJavaScript } from './webassembly-or-javascript.ts'

export const { provideWebAssembly, current: secp256k1 } = webAssemblyOrJavaScript(instantiateWebAssembly, javascript)
