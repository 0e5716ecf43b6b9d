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

// viem hashes a function's signature for every call it encodes. Here that happens once per function.

type Mutability = AbiFunction['stateMutability']

/** The arguments of a function of an ABI. */
export type ArgsOf<abi extends Abi, name extends ContractFunctionName<abi>> = ContractFunctionArgs<
  abi,
  Mutability,
  name
>

/** What a function of an ABI returns: one value, or a tuple if it returns several. */
export type ReturnOf<abi extends Abi, name extends ContractFunctionName<abi>> = ContractFunctionReturnType<
  abi,
  Mutability,
  name
>

/** The result of a call: its return data, or its revert data if it failed. */
export type CallResult = { success: boolean; data: Hex }

/** A call that reverted, or that returned something else than its ABI says; `data` is what it returned. */
export class CallFailed extends Error {
  override name = 'CallFailed'
  readonly data: Hex
  constructor(functionName: string, { success, data }: CallResult, cause?: unknown) {
    super(`${functionName} ${success ? 'returned malformed data' : 'reverted'}: ${data.slice(0, 138)}`, { cause })
    this.data = data
  }
}

/** Returns the calldata of a function. Of an overloaded name it uses the first function of the ABI. */
export function encodeCall<const abi extends Abi, name extends ContractFunctionName<abi>>(
  abi: abi,
  functionName: name,
  args: ArgsOf<abi, name>,
): Hex {
  const { selector, inputs } = signatureOf(abi, functionName)
  return inputs.length === 0
    ? selector
    : `${selector}${encodeAbiParameters(inputs, args as readonly unknown[]).slice(2)}`
}

/** Returns the arguments of a function in calldata; undefined if it calls another one, or is malformed. */
export function tryDecodeArgs<const abi extends Abi, name extends ContractFunctionName<abi>>(
  abi: abi,
  functionName: name,
  data: Hex,
): ArgsOf<abi, name> | undefined {
  const { selector, inputs } = signatureOf(abi, functionName)
  if (!data.startsWith(selector)) return undefined
  try {
    return typedByAbi(decodeAbiParameters(inputs, `0x${data.slice(selector.length)}`))
  } catch {
    return undefined
  }
}

/** Returns what a function returned. Throws CallFailed if it reverted or returned malformed data. */
export function decodeResult<const abi extends Abi, name extends ContractFunctionName<abi>>(
  abi: abi,
  functionName: name,
  result: CallResult,
): ReturnOf<abi, name> {
  const { outputs } = signatureOf(abi, functionName)
  if (hasFailed(abi, functionName, result)) throw new CallFailed(functionName, result)
  try {
    const values = decodeAbiParameters(outputs, result.data)
    return typedByAbi(values.length > 1 ? values : values[0])
  } catch (cause) {
    throw new CallFailed(functionName, result, cause)
  }
}

/** Whether a call reverted or returned nothing, as an address without code does; cheaper than a thrown CallFailed. */
export function hasFailed(abi: Abi, functionName: string, { success, data }: CallResult): boolean {
  return !success || (data === '0x' && signatureOf(abi, functionName).outputs.length > 0)
}

/** Returns what a function returned, or undefined if it reverted or returned malformed data. */
export function tryDecodeResult<const abi extends Abi, name extends ContractFunctionName<abi>>(
  abi: abi,
  functionName: name,
  result: CallResult,
): ReturnOf<abi, name> | undefined {
  if (hasFailed(abi, functionName, result)) return undefined
  try {
    return decodeResult(abi, functionName, result)
  } catch (error) {
    if (error instanceof CallFailed) return undefined
    throw error
  }
}

/**
 * Gives a value the type that its ABI defines. TypeScript cannot evaluate viem's ABI types while the function name is
 * generic; the ABI coder guarantees at runtime that the value has this type.
 */
export const typedByAbi = <Type>(value: unknown): Type => value as Type

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

// Multicall3's aggregate3, encoded without the ABI coder: a batch can have hundreds of calls.

const AGGREGATE3 = '0x82ad56cb'
/** Hex digits of an ABI word. */
const WORD = 64

/** Returns the calldata of `aggregate3` for calls that may fail one by one. */
export function encodeBatch(calls: readonly { address: Address; data: Hex }[]): Hex {
  let offset = calls.length * (WORD / 2)
  let offsets = ''
  let tuples = ''
  for (const { address, data } of calls) {
    const calldata = data.slice(2)
    const padded = calldata.padEnd(Math.ceil(calldata.length / WORD) * WORD, '0')
    const allowFailure = wordOf(1)
    const tuple = `${address.slice(2).padStart(WORD, '0')}${allowFailure}${wordOf(0x60)}${wordOf(calldata.length / 2)}${padded}`
    offsets += wordOf(offset)
    tuples += tuple
    offset += tuple.length / 2
  }
  return `${AGGREGATE3}${wordOf(0x20)}${wordOf(calls.length)}${offsets}${tuples}`
}

/** Returns the results in the return data of `aggregate3`, in order. Throws if it is not such data. */
export function decodeBatch(data: Hex): CallResult[] {
  const numberAt = (byte: number) => {
    const start = 2 + byte * 2
    const digits = data.slice(start, start + WORD)
    const value = Number(`0x${digits}`)
    if (digits.length < WORD || !Number.isSafeInteger(value)) throw new Error('not the return data of aggregate3')
    return value
  }
  const list = numberAt(0)
  return Array.from({ length: numberAt(list) }, (_, index) => {
    const tuple = list + 32 + numberAt(list + 32 * (index + 1))
    const bytes = tuple + numberAt(tuple + 32)
    const start = 2 + (bytes + 32) * 2
    return { success: numberAt(tuple) === 1, data: `0x${data.slice(start, start + numberAt(bytes) * 2)}` }
  })
}

const wordOf = (value: number) => value.toString(16).padStart(WORD, '0')
