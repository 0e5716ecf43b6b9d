type Block = { number: number; timestamp: number }

/** The shortest time in seconds over which the pace is measured: many blocks share a timestamp. */
export const MIN_PACE_SECONDS = 10

/** Creates the measure of how many blocks a second a chain makes; 0 until it is known. */
export function createBlockPace() {
  let perSecond = 0
  let since: Block | undefined
  return {
    perSecond: (): number => perSecond,
    blocksIn: (seconds: number): number => Math.ceil(perSecond * seconds),
    /** Measures up to a head, from `first` if that is the first one. */
    measure(head: Block, first: Block | undefined): void {
      since ??= first
      const seconds = head.timestamp - (since?.timestamp ?? head.timestamp)
      if (since !== undefined && seconds >= MIN_PACE_SECONDS) {
        perSecond = Math.max(0, head.number - since.number) / seconds
        since = undefined
      }
      since ??= head
    },
  }
}
