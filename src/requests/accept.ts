/** A media range of an Accept header, in lower case, with its quality. */
type MediaRange = { type: string; q: number }

/** Parses an Accept header, in its order. An unreadable quality counts as 1. */
export function mediaRangesOf(accept: string | null | undefined): MediaRange[] {
  return (accept ?? '')
    .toLowerCase()
    .split(',')
    .flatMap(range => {
      const [type = '', ...parameters] = range.split(';').map(part => part.trim())
      const given = parameters.find(parameter => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, '')
      const q = given === undefined || given === '' ? 1 : Number(given)
      return type === '' ? [] : [{ type, q: q >= 0 && q <= 1 ? q : 1 }]
    })
}

/**
 * Tells whether a client accepts a media type with a higher quality than another, or with the same and names it first.
 */
export function prefers(accept: string | null | undefined, mediaType: string, other: string): boolean {
  const ranges = mediaRangesOf(accept)
  const [own, others] = [qualityOf(ranges, mediaType), qualityOf(ranges, other)]
  if (own !== others) return own > others
  const first = ranges.find(({ type }) => type === mediaType || type === other)
  return own > 0 && first?.type === mediaType
}

/** Returns the quality of a media type: that of the most specific range which covers it; 0 if none does. */
export function qualityOf(ranges: readonly MediaRange[], mediaType: string): number {
  const covering = [mediaType, `${mediaType.split('/')[0]}/*`, '*/*']
  return covering.map(range => ranges.find(({ type }) => type === range)?.q).find(q => q !== undefined) ?? 0
}
