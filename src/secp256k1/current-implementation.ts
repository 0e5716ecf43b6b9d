import type { Secp256k1 } from './implementation.ts'
import { javascript } from './javascript.ts'
import { instantiateWebAssembly } from './webassembly.ts'

let load = () => javascript
let current: Secp256k1 | undefined

/**
 * Makes this isolate use libsecp256k1, instantiated on first use. If that fails, calls `onFailure` once and uses
 * JavaScript.
 */
export function provideWebAssembly(module: WebAssembly.Module, onFailure: (error: unknown) => void): void {
  current = undefined
  load = () => {
    try {
      return instantiateWebAssembly(module)
    } catch (error) {
      onFailure(error)
      return javascript
    }
  }
}

/** Returns the implementation of this isolate: JavaScript if no WebAssembly was provided. */
export function secp256k1(): Secp256k1 {
  current ??= load()
  return current
}
