import { z } from 'zod'

/** A value of the service for a field of a response: integers of any type, and undefined for a null. */
type Presentable<Wire> =
  | Wire
  | (string extends Wire ? bigint | number : number extends Wire ? bigint : never)
  | (null extends Wire ? undefined : never)

type Field = { name: string; isNumber: boolean; isNullable: boolean }

const fieldsOfSchemas = new WeakMap<z.ZodObject, Field[]>()

function fieldsOf(schema: z.ZodObject): Field[] {
  const known = fieldsOfSchemas.get(schema)
  if (known) return known
  const fields = Object.entries(schema.shape).map(([name, type]) => {
    let inner = type
    while (inner instanceof z.ZodNullable || inner instanceof z.ZodOptional) inner = inner.unwrap()
    return { name, isNumber: inner instanceof z.ZodNumber, isNullable: type instanceof z.ZodNullable }
  })
  fieldsOfSchemas.set(schema, fields)
  return fields
}

/**
 * Presents an object as its output schema says: takes the fields that the schema has, and writes integers as the digits
 * or numbers that it asks for, and what is undefined as null where it allows one. The object must have every field, by
 * its name in the schema.
 */
export function present<S extends z.ZodObject, F extends { [K in keyof z.input<S>]?: Presentable<z.input<S>[K]> }>(
  schema: S,
  from: F & Record<Exclude<keyof z.input<S>, keyof F>, unknown>,
): z.input<S> {
  const given = from as Record<string, unknown>
  const presented: Record<string, unknown> = {}
  for (const { name, isNumber, isNullable } of fieldsOf(schema)) {
    const value = given[name]
    if (typeof value === 'bigint') presented[name] = isNumber ? Number(value) : `${value}`
    else if (typeof value === 'number') presented[name] = isNumber ? value : `${value}`
    else if (value !== undefined) presented[name] = value
    else if (isNullable) presented[name] = null
  }
  return presented as z.input<S>
}
