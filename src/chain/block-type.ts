/** The block that values were read from. The timestamp is Unix seconds. */
export type Block = { number: bigint; timestamp: bigint }
