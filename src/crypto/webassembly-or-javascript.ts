/** Two implementations of the same functions: JavaScript, until a WebAssembly module is provided. */
export type Implementations<Implementation> = {
  /**
   * Makes this isolate use the WebAssembly, instantiated on first use. If that fails, calls `onFailure` once and uses
   * JavaScript.
   */
  provideWebAssembly(module: WebAssembly.Module, onFailure: (error: unknown) => void): void
  /** Returns the implementation of this isolate: JavaScript if no WebAssembly was provided. */
  current(): Implementation
}

export function webAssemblyOrJavaScript<Implementation>(
  instantiate: (module: WebAssembly.Module) => Implementation,
  javascript: Implementation,
): Implementations<Implementation> {
  let load = () => javascript
  let loaded: Implementation | undefined
  return {
    provideWebAssembly(module, onFailure) {
      loaded = undefined
      load = () => {
        try {
          return instantiate(module)
        } catch (error) {
          onFailure(error)
          return javascript
        }
      }
    },
    current() {
      loaded ??= load()
      return loaded
    },
  }
}
