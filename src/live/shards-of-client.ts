/**
 * How many streams of one client an object holds. It holds more if all objects together could not reach the client's
 * maximum otherwise.
 */
const STREAMS_PER_PLACE = 250

/** An object that may hold streams of a client, and how many of them. */
export type StreamPlace = { object: number; maxStreams: number }

/**
 * Returns the objects that may hold a client's streams. They follow from its address, so each object counts by itself,
 * and the client has at most `maxStreams` in all of them together.
 */
export function streamPlacesOf(client: string, maxStreams: number, objects: number): StreamPlace[] {
  const count = Math.min(objects, Math.ceil(maxStreams / STREAMS_PER_PLACE))
  const first = hashOf(client) % objects
  return Array.from({ length: count }, (_, index) => ({
    object: (first + index) % objects,
    maxStreams: Math.floor((maxStreams + index) / count),
  }))
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0
  return hash
}
