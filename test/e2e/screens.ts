type Screen = readonly [theme: 'light' | 'dark', width: number, forcedColors: 'none' | 'active']

/**
 * Returns the screens on which pages are checked: one, or in `npm run test:long` every pair of theme and width, and
 * forced colors.
 */
export const screensOf = (isLong: boolean): readonly Screen[] =>
  isLong
    ? [
        ['light', 360, 'none'],
        ['light', 1440, 'none'],
        ['dark', 360, 'none'],
        ['dark', 1440, 'none'],
        ['light', 1440, 'active'],
        ['dark', 360, 'active'],
      ]
    : [['dark', 360, 'none']]
