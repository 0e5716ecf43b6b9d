type Screen = readonly [theme: 'light' | 'dark', width: number]

/** Returns the screens on which pages are checked: each theme and width once, or in full every pair of them. */
export const screensOf = (isFull: boolean): readonly Screen[] =>
  isFull
    ? [
        ['light', 360],
        ['light', 1440],
        ['dark', 360],
        ['dark', 1440],
      ]
    : [
        ['light', 360],
        ['dark', 1440],
      ]
