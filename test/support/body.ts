// biome-ignore lint/suspicious/noExplicitAny: tests read any field; the strict schemas in surfaces.ts check the shape
export type Body = any
