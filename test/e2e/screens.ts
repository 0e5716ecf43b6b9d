type Screen = readonly [theme: 'light' | 'dark', width: number]

/** Returns screens for checks of pages: each theme and width once, and from `npm run test:slow` the other pairs. */
export const screensOf = (isFull: boolean): readonly Screen[] =>
  isFull
    ? [
        ['light', 1440],
        ['dark', 360],
      ]
    : [
        ['light', 360],
        ['dark', 1440],
      ]
