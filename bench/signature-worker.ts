import { currentKeccak256, javascript as keccak256InJavaScript } from '../src/crypto/keccak256.ts'
import { secp256k1 } from '../src/crypto/secp256k1.ts'
import { javascript as secp256k1InJavaScript } from '../src/crypto/secp256k1-javascript.ts'
import service from '../src/index.ts'

// The service with a route that recovers, signs or hashes many times: /signatures/<implementation>/<work>/<count>.
export * from '../src/index.ts'

const implementations = {
  javascript: () => ({ secp256k1: secp256k1InJavaScript, keccak256: keccak256InJavaScript }),
  webassembly: () => ({ secp256k1: secp256k1(), keccak256: currentKeccak256() }),
}
type Implementations = ReturnType<(typeof implementations)['webassembly']>
const privateKey = new Uint8Array(32).fill(1)
const hashOf = (index: number) => new Uint8Array(new Uint32Array(8).fill(index + 1).buffer)

const works = {
  /** Forces instantiation, if it is lazy. */
  load({ secp256k1 }: Implementations) {
    return () => void secp256k1.publicKeyOf(privateKey)
  },
  recover({ secp256k1 }: Implementations) {
    const { signature, yParity } = secp256k1.sign(hashOf(0), privateKey)
    return (index: number) => void secp256k1.recover(hashOf(index), signature, yParity)
  },
  sign({ secp256k1 }: Implementations) {
    return (index: number) => void secp256k1.sign(hashOf(index), privateKey)
  },
  keccak256({ keccak256 }: Implementations) {
    const bytes = new Uint8Array(1_000)
    return (index: number) => {
      bytes[0] = index
      keccak256.hash(bytes)
    }
  },
}

export default {
  ...service,
  fetch(request) {
    const [, at, implementation, work, count] = new URL(request.url).pathname.split('/')
    if (at !== 'signatures') return service.fetch(request)
    const used = implementations[implementation as keyof typeof implementations]()
    const run = works[work as keyof typeof works](used)
    for (let index = 0; index < Number(count); index++) run(index)
    return Response.json({ implementations: [used.secp256k1.name, used.keccak256.name] })
  },
} satisfies ExportedHandler<Env>
