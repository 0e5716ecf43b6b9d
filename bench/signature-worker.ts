import service from '../src/index.ts'
import { secp256k1 } from '../src/secp256k1/current-implementation.ts'
import { javascript } from '../src/secp256k1/javascript.ts'

// The service with a route that recovers or signs many times: /signatures/<implementation>/<work>/<count>.
export * from '../src/index.ts'

const implementations = { javascript: () => javascript, webassembly: secp256k1 }
const privateKey = new Uint8Array(32).fill(1)
const hashOf = (index: number) => new Uint8Array(new Uint32Array(8).fill(index + 1).buffer)

const works = {
  /** Forces instantiation, if it is lazy. */
  load: (implementation: typeof javascript) => () => void implementation.publicKeyOf(privateKey),
  recover(implementation: typeof javascript) {
    const { signature, yParity } = implementation.sign(hashOf(0), privateKey)
    return (index: number) => void implementation.recover(hashOf(index), signature, yParity)
  },
  sign: (implementation: typeof javascript) => (index: number) => void implementation.sign(hashOf(index), privateKey),
}

export default {
  ...service,
  fetch(request) {
    const [, at, implementation, work, count] = new URL(request.url).pathname.split('/')
    if (at !== 'signatures') return service.fetch(request)
    const used = implementations[implementation as keyof typeof implementations]()
    const run = works[work as keyof typeof works](used)
    for (let index = 0; index < Number(count); index++) run(index)
    return Response.json({ implementation: used.name })
  },
} satisfies ExportedHandler<Env>
