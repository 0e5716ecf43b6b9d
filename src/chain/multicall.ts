import {
  type Abi,
  type AbiFunction,
  type AbiParameter,
  type Address,
  type ContractFunctionArgs,
  type ContractFunctionName,
  type ContractFunctionReturnType,
  decodeAbiParameters,
  encodeAbiParameters,
  type Hex,
  toFunctionSelector,
} from 'viem'

// Function calls as the EVM takes them. viem hashes a function's signature for every call that it encodes; here that is
// done once for each function, and the batch of Multicall3 is put together without the ABI coder.

/** What a contract answered: what the function returned, or what it reverted with. */
export type Answer = { success: boolean; data: Hex }

/** A call that reverted, or that answered something else than its function returns; `data` is what came. */
export class CallFailed extends Error {
  override name = 'CallFailed'
  readonly data: Hex
  constructor(functionName: string, { success, data }: Answer, cause?: unknown) {
    super(`${functionName} ${success ? 'answered something else' : 'gave no answer'}: ${data.slice(0, 138)}`, { cause })
    this.data = data
  }
}

export type Outcome<T> =
  | { status: 'success'; result: T; error?: undefined }
  | { status: 'failure'; error: CallFailed; result?: undefined }

/** One function call of a batch; without arguments where the function takes none. */
export type FunctionCall = { address: Address; abi: Abi; functionName: string; args?: readonly unknown[] }

/** What a list of calls came to, each in its place. */
export type Outcomes<Calls extends readonly unknown[]> = {
  [at in keyof Calls]: Calls[at] extends { abi: infer abi extends Abi; functionName: infer name extends string }
    ? name extends ContractFunctionName<abi>
      ? Outcome<Returned<abi, name>>
      : never
    : Outcome<unknown>
}

type Returned<abi extends Abi, name extends ContractFunctionName<abi>> = ContractFunctionReturnType<
  abi,
  AbiFunction['stateMutability'],
  name
>

type Signature = { selector: Hex; inputs: readonly AbiParameter[]; outputs: readonly AbiParameter[] }

const signatures = new WeakMap<Abi, Map<string, Signature>>()

function signatureOf(abi: Abi, name: string): Signature {
  const known = signatures.get(abi) ?? new Map<string, Signature>()
  signatures.set(abi, known)
  const found = known.get(name)
  if (found) return found
  const item = abi.find((entry): entry is AbiFunction => entry.type === 'function' && entry.name === name)
  if (item === undefined) throw new Error(`The ABI has no function ${name}`)
  const signature = { selector: toFunctionSelector(item), inputs: item.inputs, outputs: item.outputs }
  known.set(name, signature)
  return signature
}

/** The calldata of a function. Of an overloaded name it is the first one of the ABI. */
export function encodeCall<const abi extends Abi, name extends ContractFunctionName<abi>>(
  abi: abi,
  functionName: name,
  args: ContractFunctionArgs<abi, AbiFunction['stateMutability'], name>,
): Hex {
  const { selector, inputs } = signatureOf(abi, functionName)
  return inputs.length === 0
    ? selector
    : `${selector}${encodeAbiParameters(inputs, args as readonly unknown[]).slice(2)}`
}

/** What a function returned, decoded; a call that reverted or answered something else is a `failure`. */
export function outcomeOf<const abi extends Abi, name extends ContractFunctionName<abi>>(
  abi: abi,
  functionName: name,
  answer: Answer = { success: false, data: '0x' },
): Outcome<Returned<abi, name>> {
  const { outputs } = signatureOf(abi, functionName)
  const isEmpty = answer.data === '0x' && outputs.length > 0 // what an address without code answers
  if (!answer.success || isEmpty) return { status: 'failure', error: new CallFailed(functionName, answer) }
  try {
    const values = decodeAbiParameters(outputs, answer.data)
    return { status: 'success', result: (values.length > 1 ? values : values[0]) as never }
  } catch (cause) {
    return { status: 'failure', error: new CallFailed(functionName, answer, cause) }
  }
}

const WORD = 64
const word = (value: number) => value.toString(16).padStart(WORD, '0')
const AGGREGATE3 = '0x82ad56cb'

/** The calldata of Multicall3's `aggregate3` that tries every call. */
export function encodeBatch(calls: readonly FunctionCall[]): Hex {
  let offset = calls.length * (WORD / 2)
  let offsets = ''
  let tuples = ''
  for (const { address, abi, functionName, args = [] } of calls) {
    const data = encodeCall(abi, functionName, args as never).slice(2)
    const padded = data.padEnd(Math.ceil(data.length / WORD) * WORD, '0')
    const tuple = `${address.slice(2).padStart(WORD, '0')}${word(1)}${word(0x60)}${word(data.length / 2)}${padded}`
    offsets += word(offset)
    tuples += tuple
    offset += tuple.length / 2
  }
  return `${AGGREGATE3}${word(0x20)}${word(calls.length)}${offsets}${tuples}`
}

/** What `aggregate3` answered to each call. Throws when it is no such answer. */
export function decodeBatch(data: Hex): Answer[] {
  const at = (byte: number) => {
    const start = 2 + byte * 2
    const digits = data.slice(start, start + WORD)
    const value = Number(`0x${digits}`)
    if (digits.length < WORD || !Number.isSafeInteger(value)) throw new Error('The answer is not that of aggregate3')
    return value
  }
  const list = at(0)
  return Array.from({ length: at(list) }, (_, index) => {
    const tuple = list + 32 + at(list + 32 * (index + 1))
    const bytes = tuple + at(tuple + 32)
    const start = 2 + (bytes + 32) * 2
    return { success: at(tuple) === 1, data: `0x${data.slice(start, start + at(bytes) * 2)}` }
  })
}
