type Screen = readonly [theme: 'light' | 'dark', width: number]

/** Returns the screens on which pages are checked: one theme and width, or every pair of them in `npm run test:long`. */
export const screensOf = (isLong: boolean): readonly Screen[] =>
  isLong
    ? [
        ['light', 360],
        ['light', 1440],
        ['dark', 360],
        ['dark', 1440],
      ]
    : [['dark', 360]]
