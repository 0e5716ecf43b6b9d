/** Returns what has a symbol, in any case; undefined if nothing has it, or if several differ from it only in case. */
export function findSymbol<T extends { symbol: string }>(listed: readonly T[], symbol: string): T | undefined {
  const same = listed.filter(each => isSameSymbol(each.symbol, symbol))
  return same.find(each => each.symbol === symbol) ?? (same.length === 1 ? same[0] : undefined)
}

export const isSameSymbol = (one: string, other: string): boolean => one.toUpperCase() === other.toUpperCase()
