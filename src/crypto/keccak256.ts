import { javascript } from './keccak256-javascript.ts'
import { instantiateWebAssembly } from './keccak256-webassembly.ts'
import { webAssemblyOrJavaScript } from './webassembly-or-javascript.ts'

export const { provideWebAssembly, current: currentKeccak256 } = webAssemblyOrJavaScript(
  instantiateWebAssembly,
  javascript,
)

/** Returns the keccak-256 hash of bytes, 32 bytes. */
export const keccak256 = (bytes: Uint8Array): Uint8Array => currentKeccak256().hash(bytes)
